"""Reads the files of conf/deploy, and checks them against the schemas in tests/data/schemas and against the commands that they start."""

import json
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

from jobs.cli import entry

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "conf" / "deploy"
SCHEMAS = PROJECT / "tests" / "data" / "schemas"


def documents(path):
    """The documents of a YAML file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def schema(name, definition=None):
    """A schema, or one of its definitions."""
    whole = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return whole if definition is None else {"$ref": f"#/$defs/{definition}", **whole}


def problems(document, against):
    """What a document breaks of a schema: places and reasons."""
    found = Draft202012Validator(against).iter_errors(document)
    return sorted(f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in found)


def options_of(words):
    """The options that `rebalance` reads from these words. ClickException: it would refuse them. Nothing is run."""
    name, *rest = map(str, words)
    return entry.cli.commands[name].make_context(name, rest).params
