"""The options that a program shows are those that it takes, in its help, its man page and its prose."""

import re

import pytest

from support import manual, paths, tool

PROGRAMS = ("nc2zarr", "rechunk", "chunkcalc", "readbench")


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_shown_is_taken(program):
    options = manual.options_of_help(program)
    assert {"--help", "--version", "--json", "-q"} <= options
    for option in options:
        done = tool.run(program, option)
        assert "unknown option" not in done.err, option
    assert "unknown option" in tool.run(program, "--no-such").err


@pytest.mark.parametrize("program", PROGRAMS)
def test_man_page_holds_every_option(program):
    assert manual.options_of_page(program) == manual.options_of_help(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_h_is_one_screen(program):
    """Examples, then the most used options, each as --help begins to explain it, then where the others are."""
    done = tool.run(program, "-h").ok()
    lines = done.out.splitlines()
    assert done.err == "" and len(lines) <= 40
    assert tool.run(program, "-vh").out == done.out
    examples, options = lines.index("Examples:"), lines.index("The most used options:")
    assert examples < options and lines[-1] == f"{program} --help prints all options."
    whole = " ".join(tool.run(program, "--help").ok().out.split())
    shown = set(re.findall(r"^  (?:-\w, |    )--([a-z-]+)", done.out, re.M))
    assert 10 <= len(shown) < len(manual.options_of_help(program)) / 2
    for option, text in re.findall(r"--([a-z-]+)(?: \S+)?\s{2,}([^\n]*(?:\n {30}\S[^\n]*)*)", done.out[done.out.index("used"):]):
        assert f"{' '.join(text.split())}" in whole, option


@pytest.mark.parametrize("program", PROGRAMS)
def test_sections_stand_by_use(program):
    sections = re.findall(r"^(\w.*):$", tool.run(program, "--help").ok().out, re.M)
    assert sections[0] == "Usage" and sections[-2:] == ["Common to all programs", "Examples"]
    assert sections[-3].startswith("Buckets"), sections


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_fits_a_terminal(program):
    assert manual.width_of_help(program) <= 88


def test_what_prose_names_is_an_option():
    known = set().union(*map(manual.options_of_help, PROGRAMS))
    for program in PROGRAMS:
        prose = (paths.ROOT / "man" / f"{program}.inc").read_text().replace("\\-", "-")
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]", prose))
        assert named and named <= known, (program, named - known)
