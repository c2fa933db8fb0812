"""`make docs`: pages of HTML that hold what the documents say, whose links lead somewhere, and that need no network."""

import html.parser
import importlib.util
import re
import subprocess

import pytest

from support import browser, paths

SCRIPT = paths.ROOT / "scripts" / "docs.py"
spec = importlib.util.spec_from_file_location("docs", SCRIPT)
docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(docs)

EMPTY = {"meta", "link", "img", "br"}


class Page(html.parser.HTMLParser):
    """Its links, pictures, anchors and text; each element is closed."""

    def __init__(self, path):
        super().__init__()
        self.open, self.links, self.sources, self.anchors, self.text = [], [], [], set(), []
        self.feed(path.read_text())
        self.close()
        assert self.open == [], path

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.open += [] if tag in EMPTY else [tag]
        self.links += [attrs["href"]] if tag == "a" else []
        self.sources += [attrs[k] for k in ("src", "href") if k in attrs and tag != "a"]
        self.anchors |= {attrs["id"]} if "id" in attrs else set()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run([SCRIPT, paths.BUILD, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, {p.name: Page(p) for p in folder.glob("*.html")}


def test_all_of_docs_is_there(site):
    folder, pages = site
    assert set(pages) == set(docs.PAGES.values())
    assert {f"docs/{p.name}" for p in (paths.ROOT / "docs").glob("*.md")} <= set(docs.PAGES)


def test_links_lead_to_pages_files_and_headings(site):
    folder, pages = site
    for name, page in pages.items():
        for target in page.links:
            if re.match(r"https?:", target):
                continue
            file, _, anchor = target.partition("#")
            assert (folder / (file or name)).is_file(), (name, target)
            assert not anchor or anchor in pages[file or name].anchors, (name, target)


def test_no_network_is_needed(site):
    folder, pages = site
    for name, page in pages.items():
        assert all((folder / s).is_file() for s in page.sources if not s.startswith("data:")), name
        assert not re.search(r"url\(|@import|<script", (folder / name).read_text().partition("<main>")[0]), name


def words(text):
    return re.findall(r"\w+", text)


@pytest.mark.parametrize("document", [d for d in docs.PAGES if "." in d])
def test_a_page_says_what_the_document_says(document, site):
    """Word by word: without the signs of Markdown and the targets of links."""
    text = (paths.ROOT / document).read_text()
    prose = re.sub(r"^[|: -]+$", "", text, flags=re.M)
    prose = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", prose)
    prose = re.sub(r"\]\([^)\s]*\)", "", prose)
    prose = re.sub(r"^\d+\. ", "", prose, flags=re.M)
    page = site[0] / docs.PAGES[document]
    main = re.sub(r"</t[dh]>", " ", page.read_text().partition("<main>")[2].partition("</main>")[0])
    outside = re.sub(r"<code>.*?</code>", "", main, flags=re.S)
    main = re.sub(r"<[^>]+>", "", main)
    assert words(html.unescape(main)) == words(prose)
    assert "**" not in outside and "](" not in outside


def test_a_link_that_leads_nowhere_is_an_error():
    with pytest.raises(SystemExit, match="there is no such file"):
        docs.Site.link(object(), "docs/scale.md", "nowhere.md")


@pytest.mark.few(2)
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["index.html", "gallery.html", "archives.html", "nc2zarr.html"])
def test_in_a_browser(name, width, site, tmp_path):
    if not browser.find():
        pytest.skip("chromium is not installed")
    b = browser.Browser(tmp_path)
    b.open(site[0] / name, width=width)
    assert b.complaints() == [] and b.evaluate("document.documentElement.scrollWidth") <= width
    b.close()


