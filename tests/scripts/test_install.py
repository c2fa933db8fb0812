"""`make install` into a folder, and back."""

import os
import re
import subprocess

from support import paths

SCRIPT = paths.ROOT / "scripts" / "install.sh"
LINK = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")


def test_links_of_installed_documents_lead_somewhere_and_nothing_stays(tmp_path):
    prefix = tmp_path / "a prefix"
    subprocess.run([SCRIPT, paths.BUILD, prefix], check=True, capture_output=True)
    documents = prefix / "share" / "doc" / "chunkmill"
    links = [(page, link) for page in documents.rglob("*.md") for link in LINK.findall(page.read_text())]
    assert len(links) > 20
    assert [(str(page), link) for page, link in links if not (page.parent / link).exists()] == []
    subprocess.run([SCRIPT, "--remove", paths.BUILD, prefix], check=True, capture_output=True)
    assert [name for _, _, files in os.walk(prefix) for name in files] == []
    assert not documents.exists()
