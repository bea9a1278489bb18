"""Reads a page as a browser does: what is not well-formed, or leaves the page, is an error."""

import json
import re
from html.parser import HTMLParser

from jobs.cli import report as command
from jobs.dashboard.saved import saved_report

VOID = {"meta"}
LEADS_AWAY = {"action", "background", "data", "formaction", "poster", "src", "srcset", "xlink:href"}


class Page(HTMLParser):
    """The text, the links, the anchors and the elements of a page."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.open, self.tags, self.ids, self.links, self.texts, self.attributes = [], [], [], [], [], []
        self.answers = json.loads(re.search(r'<script type="application/json" id="answers">(.*?)</script>', source, re.DOTALL)[1])
        self.feed(source)
        self.close()
        assert self.open == [], "elements that are not closed"
        assert len(self.ids) == len(set(self.ids)), "an id twice"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}"
        self.tags.append(tag)
        for name, value in attrs:
            assert name not in LEADS_AWAY
            assert not name.startswith("on")
            self.attributes.append(value or "")
            if name == "id":
                self.ids.append(value)
            elif name == "href":
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self):
        """What is read without scripts."""
        return " ".join(" ".join(self.texts).split())

    @property
    def entries(self):
        """The incidents, in their order."""
        return self.answers["overview"]["entries"]

    def at(self, address):
        """The answers at addresses that begin so."""
        return [answer for place, answer in self.answers.items() if place.startswith(address)]


def page_of(lakehouse, report, inputs=(), limit=command.PAGE_LIMIT):
    """The page of a report."""
    return Page(saved_report(lakehouse, report, list(inputs), limit=limit, text=command.as_text(report, limit)))


def told(page):
    """What a reader is told: the words of each incident, and of each rebalance with its group."""
    texts = [" ".join([one["code"], *one["groups"], one["clients"], one["message"], one["advice"]]) for one in page.entries]
    for group in page.at("group?"):
        names = ("group_id", "blamed", "culprit_client_id", "culprit_broker")
        texts += [" ".join(str(row[name]) for name in names) for row in group["rebalances"]["rows"]]
        texts += [" ".join(str(row[name]) for name in ("code", "group_id", "client_id")) for row in group["findings"]["rows"]]
    return texts
