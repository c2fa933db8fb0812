#!/usr/bin/env python3
"""A table of what attackers try: which attack, how many trials, how many failed.

    tests/attacks.py BUILD [WORD...]

Runs the tests of each attack, in their long versions, and with CHUNKMILL_FULL=1 in the longest (200 rounds of each verb
behind the faulty server); with WORDS only attacks whose names hold one of them.  Rows appear as they end.  A trial is a
test, or a round of one that tells its rounds.  The exit status is 1 where anything failed, or nothing ran.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORE, REMOTE, LOADER = "tests/store/test_attack.py", "tests/cli/remote", "tests/interop/test_loader.py"


def verb(name):
    return [f"{STORE}::test_verb[{name}]"]


ATTACKS = {
    "append, 20 and 40 % of requests fail": verb("append") + verb("append to shards"),
    "replace, likewise": verb("replace"),
    "parts, likewise": verb("parts"),
    "references, likewise": verb("references"),
    "multipart, likewise": verb("multipart"),
    "write, likewise": verb("write"),
    "rechunk, likewise": verb("rechunk"),
    "rechunk --append with statistics, likewise": verb("rechunk append"),
    "rechunk in parts, likewise": verb("rechunk parts"),
    "a lock lost in the middle": ["tests/append/test_buckets.py::test_a_lock_that_was_taken_over", "tests/append/test_locks.py", "tests/fault/test_ownership.py::test_one_of_two_wins", "tests/fault/test_ownership.py::test_many_take_a_stale_lock"],
    "clocks that are set": ["tests/append/test_clocks.py", f"{REMOTE}/test_remote_parts.py::test_the_clock_of_the_server_is_set", f"{REMOTE}/test_remote_parts.py::test_a_lock_of_a_part_elsewhere"],
    "an ETag that changes between reads": [f"{REMOTE}/test_remote_read.py::test_an_object_that_changes", f"{REMOTE}/test_remote_references.py::test_a_file_that_changes_between_two_parts"],
    "a Content-Range that lies, lengths": [f"{REMOTE}/test_remote_read.py::test_lengths_that_are_lies", f"{REMOTE}/test_remote_hostile.py::test_an_answer_that_makes_no_sense_is_not_asked_for_again_and_again"],
    "200 for a range": [f"{REMOTE}/test_remote_read.py::test_servers_without_ranges"],
    "100,000 keys, listings that go round": [f"{REMOTE}/test_remote_endless.py::test_a_long_listing", f"{REMOTE}/test_remote_hostile.py::test_a_listing_that_goes_round_is_an_error"],
    "a body without end": [f"{REMOTE}/test_remote_endless.py::test_a_body_without_end", f"{REMOTE}/test_remote_endless.py::test_headers_without_end", f"{REMOTE}/test_remote_endless.py::test_metadata_without_end", f"{REMOTE}/test_remote_endless.py::test_references_without_end", f"{REMOTE}/test_remote_endless.py::test_writing_where_errors_have_no_end"],
    "a gzip bomb, JSON bombs": [f"{REMOTE}/test_remote_endless.py::test_a_gzip_bomb", f"{REMOTE}/test_remote_endless.py::test_json_whose_tree_takes_all_memory", f"{REMOTE}/test_remote_endless.py::test_references_without_end[compressed]"],
    "TLS with a wrong name, or of nobody": [f"{REMOTE}/test_remote_hostile.py::test_a_certificate_of_another_name", f"{REMOTE}/test_remote_read.py::test_a_certificate_that_nobody_signed"],
    "SeaweedFS, Swift, moto": ["tests/store/test_servers.py"],
    "appends and rechunk --append, killed": ["tests/append/test_kills.py", "tests/append/test_shards.py"],
    "foreign files in OUTPUT.chunkmill, odd names, ten runs": ["tests/cli/output/test_company.py", "tests/fault/test_ownership.py::test_what_is_foreign_stays", "tests/fault/test_ownership.py::test_strange_files_beside_the_output", "tests/cli/nc2zarr/test_names.py", "tests/cli/nc2zarr/test_parts.py::test_ten_begin_at_once_on_nothing"],
    "the wheel: fork": [f"{LOADER}::test_a_forked_child_gets_errors", f"{LOADER}::test_a_loader_is_not_sent_to_another_process"],
    "the wheel: end of the interpreter": [f"{LOADER}::test_what_is_alive_when_the_interpreter_ends", f"{LOADER}::test_a_process_that_ends_in_the_loop"],
    "the wheel: order of garbage": [f"{LOADER}::test_many_loaders_leave_nothing", f"{LOADER}::test_capsules", f"{LOADER}::test_held_batches_stay_as_they_are"],
    "the wheel: exceptions, interrupts": [f"{LOADER}::test_an_exception_in_the_loop", f"{LOADER}::test_capsules_that_go_while_an_exception_is_raised", f"{LOADER}::test_an_interrupt_ends_a_wait", f"{LOADER}::test_interrupts_lose_nothing"],
    "damaged files": ["tests/fault/test_damaged.py", "tests/archive/test_long_dimensions.py", "tests/fault/test_preflight.py"],
}  # fmt: skip


def run(build, tests):
    """(trials, failed, skipped) of TESTS, and what pytest said."""
    env = os.environ | {"CHUNKMILL_BUILD": str(build), "CHUNKMILL_LONG": "1"}
    with tempfile.TemporaryDirectory(prefix="chunkmill-attacks-") as folder:
        command = [str(build / "venv/bin/python"), "-B", "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", f"--basetemp={folder}/t", *tests]
        said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True).stdout
    last = said.rstrip().rpartition("\n")[2]
    passed, failed, errors, skipped = (int(m[1]) if (m := re.search(rf"(\d+) {word}", last)) else 0 for word in ("passed", "failed", "error", "skipped"))
    rounds = [(int(a), int(b)) for a, b in re.findall(r"(\d+) rounds,.* (\d+) failed", said)]
    if rounds and not errors:
        return sum(n for n, _ in rounds), sum(n for _, n in rounds), skipped, said
    return passed + failed + errors, failed + errors, skipped, said


def main(build, *words):
    bad = False
    print(f"| {'attack':55} | trials | failed | skipped | seconds |\n| {'-' * 55} | -----: | -----: | ------: | ------: |", flush=True)
    for name, tests in ATTACKS.items():
        if words and not any(word in name for word in words):
            continue
        begin = time.monotonic()
        trials, failed, skipped, said = run(Path(build).resolve(), tests)
        print(f"| {name:55} | {trials:6} | {failed:6} | {skipped:7} | {time.monotonic() - begin:7.0f} |", flush=True)
        if failed or trials + skipped == 0:
            print(said[-3000:], file=sys.stderr)
            bad = True
    return int(bad)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    sys.exit(main(*sys.argv[1:]))
