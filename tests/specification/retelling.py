"""Transcripts in text files: the coordinator's lines are written anew and compared."""

import os


def assert_goes_as_it_is_told(path, begin):
    """`begin`: the story that a line `kafka …` begins; called with "" for a transcript without one."""
    told = path.read_text(encoding="utf-8")
    retold = _retold(told, begin)
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        path.write_text(retold, encoding="utf-8")
    assert retold == told


def _retold(text, begin):
    story, out = None, []
    for line in text.splitlines():
        if line.startswith("kafka "):
            story = begin(line)
            out.append(line)
        elif line.startswith("> "):
            story = story or begin("")
            out.append(line)
            out.extend(story.tell(line[2:]))
        elif not line.strip() or line.startswith("#"):
            out.append(line)
    return "\n".join(out) + "\n"
