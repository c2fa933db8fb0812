#!/usr/bin/env python3
"""comments.py: comments in C and Python that begin with What, Who, Whose or Those that, and so name nothing.

A comment names the thing first, then says what holds of it.  scripts/comments.txt has how many such comments a folder
may still have; it may only shrink.  Prints FILE:LINE: and the beginning of each comment of a folder that has more.
"""
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Literals are matched as well, so that a "/*" inside one is not taken for a comment.
TOKEN = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*", re.S)
BEGINS = re.compile(r"(?:/\*+|//|#|[rR]?\"\"\")[\s*]*((?:What|Who|Whose|Those that) [^\n]*)")


def c_comments(path):
    text = path.read_text()
    for token in TOKEN.finditer(text):
        if token[0][0] == "/":
            yield text.count("\n", 0, token.start()) + 1, token[0]


def python_comments(path):
    """Comments, of which a block is one, and docstrings: strings that a line begins with."""
    last = 0
    with open(path, "rb") as file:
        for token in tokenize.tokenize(file.readline):
            line = token.start[0]
            alone = token.line[: token.start[1]].strip() == ""
            if token.type == tokenize.COMMENT:
                if not (alone and line == last + 1):
                    yield line, token.string
                last = line if alone else 0
            elif token.type == tokenize.STRING and alone:
                yield line, token.string


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    return [path for path in listed.splitlines() if (ROOT / path).is_file()]


def find_riddles():
    for path in tracked("*.c", "*.h", "*.py"):
        comments = python_comments if path.endswith(".py") else c_comments
        for line, text in comments(ROOT / path):
            begins = BEGINS.match(text)
            if begins:
                yield path, f"{path}:{line}: {begins[1].rstrip(' */')}"


def main():
    table = [line.split() for line in (ROOT / "scripts/comments.txt").read_text().splitlines() if line[:1] not in ("", "#")]
    allowed = {folder: int(most) for most, folder in table}
    found = {}
    for path, text in find_riddles():
        folder = next((f for f in allowed if path.startswith(f + "/")), "")
        found.setdefault(folder, []).append(text)
    complaints = []
    for folder, texts in sorted(found.items()):
        if len(texts) > allowed.get(folder, 0):
            complaints += texts
            if folder:
                complaints.append(f"{folder}: {len(texts)} comments name nothing, allowed are {allowed[folder]}")
    if complaints:
        sys.exit("\n".join([*complaints, "comments name the thing first, then say what holds of it"]))


if __name__ == "__main__":
    main()
