"""Reads a page as a browser does: what is not well-formed, or leaves the page, is an error."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

VOID = {"br", "input", "meta"}
LEADS_AWAY = {"action", "background", "data", "formaction", "poster", "src", "srcset", "xlink:href"}


class Page(HTMLParser):
    """The text, the links, the anchors and the elements of a page."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.open, self.tags, self.ids, self.links, self.texts, self.attributes = [], [], [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == [], "elements that are not closed"
        assert len(self.ids) == len(set(self.ids)), "an id twice"
        for picture in re.findall(r"<svg.*?</svg>", source, re.DOTALL):
            ET.parse(io.StringIO(picture))

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
        return " ".join(" ".join(self.texts).split())


def told(source):
    """What a reader is told: the text of each incident, and of each rebalance with its group."""
    texts = [Page(card).text for card in re.findall(r"<article .*?</article>", source, re.DOTALL)]
    for section in re.findall(r'<details class="group.*?</details>', source, re.DOTALL):
        group = Page(re.search(r"<summary>.*?</summary>", section, re.DOTALL)[0]).text
        texts += [f"{group} {Page(row).text}" for row in re.findall(r"<tr id.*?</tr>", section, re.DOTALL)]
    return texts
