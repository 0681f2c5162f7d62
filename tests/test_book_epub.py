"""EPUB and DOCX of many kinds: where chapters begin, what belongs to which, what is left out."""

from __future__ import annotations

import pytest

from studio.book.importing import read_bytes
from studio.book.manuscript import Manuscript, Section
from tests.books import CONTAINER, W, _p, zipped

LONG = "<p>" + "The road went on and on. " * 60 + "</p>"


def page(body: str, kind: str = "") -> str:
    typed = f' epub:type="{kind}"' if kind else ""
    return (
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><head><title>x</title>'
        f"</head><body{typed}>{body}</body></html>"
    )


def nav(items: str) -> str:
    return page(f'<nav epub:type="toc"><ol>{items}</ol></nav>')


def entry(href: str, title: str, children: str = "") -> str:
    return f'<li><a href="{href}">{title}</a>{f"<ol>{children}</ol>" if children else ""}</li>'


def epub(pages: dict[str, str], contents: str = "", ncx: str = "", off: tuple[str, ...] = ()) -> list[Section]:
    return list(book(pages, contents, ncx, off).sections)


def book(pages: dict[str, str], contents: str = "", ncx: str = "", off: tuple[str, ...] = ()) -> Manuscript:
    items = "".join(f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>' for name in pages)
    linear = {name: "no" if name in off else "yes" for name in pages}
    spine = "".join(f'<itemref idref="{name}" linear="{linear[name]}"/>' for name in pages)
    files = {f"OEBPS/{name}.xhtml": text for name, text in pages.items()}
    if contents:
        items += '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        files["OEBPS/nav.xhtml"] = nav(contents)
    if ncx:
        items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        files["OEBPS/toc.ncx"] = ncx
    opf = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
    data = zipped({"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": opf, **files})
    return read_bytes(data, "a.epub")


def shape(sections: list[Section]) -> list[tuple[str, str, bool, int]]:
    return [(section.title, section.kind, section.on, len(section.blocks)) for section in sections]


def test_chapters_within_one_file_begin_at_their_anchors() -> None:
    body = '<h2 id="a">One</h2><p>x</p><p>y <a id="b"/></p><p id="c">Two</p><p>z</p>'
    found = epub({"p": page(body)}, entry("p.xhtml#a", "One") + entry("p.xhtml#c", "Two"))
    assert shape(found) == [("One", "chapter", True, 3), ("Two", "chapter", True, 2)]


def test_files_that_the_contents_do_not_name_go_on_with_the_chapter() -> None:
    pages = {"a": page("<h1>One</h1>" + LONG), "a2": page(LONG), "b": page("<h1>Two</h1>" + LONG)}
    found = epub(pages, entry("a.xhtml", "One") + entry("b.xhtml", "Two"))
    assert shape(found) == [("One", "chapter", True, 3), ("Two", "chapter", True, 2)]


def test_parts_are_looked_into_and_sections_within_chapters_are_not() -> None:
    pages = {
        "p": page("<h1>Part One</h1>"),
        "a": page(f'<h2>Chapter 1</h2>{LONG}<h3 id="s">A section</h3>{LONG}'),
        "b": page(f"<h2>Chapter 2</h2>{LONG}"),
    }
    inner = entry("a.xhtml", "Chapter 1", entry("a.xhtml#s", "A section")) + entry("b.xhtml", "Chapter 2")
    found = epub(pages, entry("p.xhtml", "Part One", inner))
    assert shape(found) == [
        ("Part One", "part", True, 1),
        ("Chapter 1", "chapter", True, 4),
        ("Chapter 2", "chapter", True, 2),
    ]


def test_ncx_is_read_when_there_is_no_nav() -> None:
    points = "".join(
        f'<navPoint><navLabel><text>{title}</text></navLabel><content src="{href}"/></navPoint>'
        for title, href in [("Eins", "a.xhtml"), ("Zwei", "b.xhtml")]
    )
    ncx = f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{points}</navMap></ncx>'
    found = epub({"a": page("<p>x</p>"), "b": page("<p>y</p>")}, ncx=ncx)
    assert [section.title for section in found] == ["Eins", "Zwei"]


def test_without_contents_headings_and_files_make_chapters() -> None:
    pages = {
        "t": page("<p>A Book</p>"),
        "a": page("<h1>One</h1><p>x</p><h1>Two</h1><p>y</p>"),
        "b": page("<p>tail</p>"),
    }
    found = epub(pages)
    assert [section.title for section in found] == ["A Book", "One", "Two", "tail"]
    assert [block.text for section in found for block in section.blocks] == ["A Book", "One", "x", "Two", "y", "tail"]


def test_broken_contents_are_told_and_headings_are_used() -> None:
    ncx = "<ncx><navMap><navPoint>"
    found = book({"a": page("<h1>One</h1><p>x</p>")}, ncx=ncx)
    assert shape(list(found.sections)) == [("One", "chapter", True, 2)]
    assert "table of contents cannot be read" in found.notes[0]


def test_what_is_not_part_of_the_reading_order_is_off() -> None:
    pages = {"a": page("<h1>One</h1><p>x</p>"), "n": page("<h1>Notes</h1><p>n</p>"), "e": page("<p>extra</p>")}
    found = epub(pages, entry("a.xhtml", "One") + entry("n.xhtml", "Notes"), off=("e",))
    assert [(s.title, s.kind, s.on) for s in found] == [
        ("One", "chapter", True), ("Notes", "notes", False), ("extra", "notes", False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "html, spoken, off",
    [
        (
            '<p>A<sup><a href="#n1">1</a></sup> b</p><div class="footnotes"><p id="n1">note</p></div>',
            ["A b"],
            ["1", "note"],
        ),
        ('<p>A<a href="#n"><sup>[2]</sup></a></p>', ["A"], ["[2]"]),
        ("<p>x<sup>2</sup> and H<sub>2</sub>O</p>", ["x2 and H2O"], []),
        ('<p>See <a href="#c">chapter 2</a></p>', ["See chapter 2"], []),
        ('<p>a<span class="pagenum">12</span>b</p>', ["ab"], ["12"]),
        ("<aside><p>aside</p></aside><p>text</p>", ["text"], ["aside"]),
        ('<div role="doc-endnotes"><p>n</p></div>', [], ["n"]),
        ("<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>字", ["漢字"], ["(", "かん", ")"]),
        ("<p>one\n two</p><p>你好\n世界</p>", ["one two", "你好世界"], []),
        ("<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>", ["a", "b", "c"], []),
        ("<p>a<br/>b</p><pre>c\nd</pre>", ["a\nb", "c\nd"], []),
        ("<p>a&amp;b &lt;c&gt;</p><!-- no --><?no no?><p>&#x4F60;</p>", ["a&b <c>", "你"], []),
        ("<p><![CDATA[raw <text>]]></p>", ["raw <text>"], []),
    ],
)
def test_what_is_spoken_of_a_page(html: str, spoken: list[str], off: list[str]) -> None:
    blocks = [block for section in epub({"a": page(html)}) for block in section.blocks]
    assert [block.text for block in blocks if block.on] == spoken
    assert [block.text for block in blocks if not block.on] == off


def docx(*paragraphs: str, styles: str = "") -> list[Section]:
    files = {"word/document.xml": f"<w:document {W}><w:body>{''.join(paragraphs)}</w:body></w:document>"}
    if styles:
        files["word/styles.xml"] = f"<w:styles {W}>{styles}</w:styles>"
    return list(read_bytes(zipped(files), "a.docx").sections)


def test_a_docx_without_styles_has_chapters_by_their_words() -> None:
    found = docx(_p("Chapter 1"), _p("x"), _p("* * *"), _p("第二章"), _p("y"))
    assert shape(found) == [("Chapter 1", "chapter", True, 3), ("第二章", "chapter", True, 2)]
    assert [block.kind for block in found[0].blocks] == ["heading", "text", "scene"]


def test_styles_of_other_languages_and_styles_built_on_headings() -> None:
    styles = (
        '<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="My Title"/><w:basedOn w:val="1"/></w:style>'
        '<w:style w:styleId="berschrift"><w:name w:val="Überschrift 1"/></w:style>'
        '<w:style w:styleId="loop"><w:name w:val="loop"/><w:basedOn w:val="loop"/></w:style>'
    )
    found = docx(_p("A", "Mine"), _p("x", "loop"), _p("B", "berschrift"), _p("y"), styles=styles)
    assert [section.title for section in found] == ["A", "B"]


def test_tables_boxes_breaks_and_changes_of_a_docx() -> None:
    table = f"<w:tbl><w:tr><w:tc>{_p('cell one')}</w:tc><w:tc>{_p('cell two')}</w:tc></w:tr></w:tbl>"
    box = f"<w:p><w:r><w:t>out</w:t></w:r><w:r><w:txbxContent>{_p('boxed')}</w:txbxContent></w:r></w:p>"
    change = "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    tab = "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:noBreakHyphen/><w:t>c</w:t></w:r></w:p>"
    found = docx(table, box, change, tab)[0]
    assert [(b.text, b.kind) for b in found.blocks] == [
        ("cell one", "table"),
        ("cell two", "table"),
        ("out", "text"),
        ("boxed", "text"),
        ("new", "text"),
        ("a b-c", "text"),
    ]
