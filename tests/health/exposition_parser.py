"""Prometheus' text format 0.0.4, read by the letter: what its documentation does not allow is an error."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)\Z')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|\Z)')
KINDS = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass
class Family:
    name: str
    help: str
    kind: str = ""
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)

    def value(self, suffix="", **labels):
        return self.samples[self.name + suffix, frozenset(labels.items())]


def parse(text):
    """Families by name. Lines end with a line feed, HELP comes before TYPE before the samples, no family twice, no sample twice."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    family = None
    for line in text[:-1].split("\n"):  # not splitlines: other line ends are no line ends here
        if line.startswith("# HELP "):
            _, _, name, told = line.split(" ", 3)
            assert name not in families
            assert re.fullmatch(r"(?:[^\\]|\\\\|\\n)*", told)
            family = families[name] = Family(name, told)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert family is not None
            assert (name, family.kind, family.samples) == (family.name, "", {})
            assert kind in KINDS
            family.kind = kind
        else:
            match = SAMPLE.match(line)
            assert match, line
            name, labels, number = match.groups()
            assert family is not None
            assert name in {family.name + suffix for suffix in KINDS[family.kind]}
            pairs = [(key, re.sub(r'\\[\\"n]', lambda m: ESCAPES[m.group()], value)) for key, value in LABEL.findall(labels or "")]
            assert len(dict(pairs)) == len(pairs)
            key = name, frozenset(pairs)
            assert key not in family.samples, f"twice: {line}"
            family.samples[key] = float(number)
    for each in families.values():
        assert each.samples
        if each.kind == "histogram":
            _check_histogram(each)
    return families


def _check_histogram(family):
    series: dict[frozenset[tuple[str, str]], dict[float, float]] = {}
    for (name, labels), value in family.samples.items():
        if name.endswith("_bucket"):
            bound = float(dict(labels)["le"])
            series.setdefault(frozenset(pair for pair in labels if pair[0] != "le"), {})[bound] = value
    assert series
    for labels, buckets in series.items():
        counts = [buckets[bound] for bound in sorted(buckets)]
        assert counts == sorted(counts)
        assert buckets[math.inf] == family.samples[family.name + "_count", labels]
        assert (family.name + "_sum", labels) in family.samples
