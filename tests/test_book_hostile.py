"""Files that are broken, disguised, locked or malicious end in a sentence, or are read as what they are."""

from __future__ import annotations

import io
import zipfile
import zlib

import pytest

from studio.book import archives
from studio.book.encodings import decode
from studio.book.errors import ImportingError
from studio.book.importing import read_bytes, read_text
from tests.books import CONTAINER, W, _p, as_docx, as_epub, make_novel, zipped

PAGE = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body>{}</body></html>'


def package(items: str = "", spine: str = '<itemref idref="a"/>') -> str:
    return (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
        f'<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>{items}</manifest>'
        f"<spine>{spine}</spine></package>"
    )


def epub(page: str = PAGE.format("<p>Words here.</p>"), opf: str = "", **more: str | bytes) -> bytes:
    files = {"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": opf or package(), "OEBPS/a.xhtml": page}
    return zipped({**files, **{name.replace("__", "/"): content for name, content in more.items()}})


def docx(body: str, **more: str) -> bytes:
    document = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return zipped({"word/document.xml": document, **more})


def said(data: bytes, name: str) -> str:
    with pytest.raises(ImportingError) as error:
        read_bytes(data, name)
    sentence = str(error.value)
    assert sentence.endswith((".", ")")) and "Traceback" not in sentence and len(sentence) < 400
    return sentence


def texts(data: bytes, name: str) -> list[str]:
    return [block.text for section in read_bytes(data, name).sections for block in section.blocks]


@pytest.fixture(scope="module")
def small() -> dict[str, bytes]:
    novel = make_novel(chapters=2, words_each=300)
    return {"a.epub": as_epub(novel), "a.docx": as_docx(novel)}


@pytest.mark.parametrize("name", ["a.epub", "a.docx"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95, 0.999])
def test_a_file_that_is_cut_off(name: str, share: float, small: dict[str, bytes]) -> None:
    data = small[name]
    assert "damaged" in said(data[: int(len(data) * share)], name)


@pytest.mark.parametrize("name", ["a.epub", "a.docx"])
def test_flipped_bytes_never_end_in_anything_but_a_sentence(name: str, small: dict[str, bytes]) -> None:
    data = small[name]
    refused = 0
    for place in range(40, len(data), max(1, len(data) // 150)):
        broken = bytearray(data)
        broken[place] ^= 0x5A
        try:
            read_bytes(bytes(broken), name)
        except ImportingError:
            refused += 1
    assert refused > 50


def test_a_zip_bomb_is_refused_while_it_unpacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MEMBER_BYTES", 2**20)
    bomb = PAGE.format("<p>" + "a " * 2**20 + "</p>")
    assert "unpacks to more than" in said(epub(bomb), "bomb.epub")
    assert "unpacks to more than" in said(docx(_p("b " * 2**20)), "bomb.docx")


def test_a_member_that_lies_about_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MEMBER_BYTES", 2**16)
    data = bytearray(epub(PAGE.format("<p>" + "a " * 2**18 + "</p>")))
    real = len(PAGE.format("<p>" + "a " * 2**18 + "</p>")).to_bytes(4, "little")
    assert real in data
    said(bytes(data.replace(real, (100).to_bytes(4, "little"))), "liar.epub")


def test_many_members_and_many_small_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ALL_BYTES", 2**20)
    items = "".join(f'<item id="b{n}" href="b{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(20))
    spine = "".join(f'<itemref idref="b{n}"/>' for n in range(20))
    pages = {f"OEBPS__b{n}.xhtml": PAGE.format("<p>" + "x " * 50_000 + "</p>") for n in range(20)}
    assert "unpacks to more than" in said(epub(opf=package(items, spine), **pages), "many.epub")
    monkeypatch.setattr(archives, "MOST_MEMBERS", 10)
    assert "holds 24 files" in said(epub(**pages, x="1"), "many.epub")


@pytest.mark.parametrize("where", ["page", "package", "docx"])
def test_entities_reach_nothing_and_do_not_explode(where: str, tmp_path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET")
    outside = f'<!DOCTYPE x [<!ENTITY s SYSTEM "{secret.as_uri()}">]>'
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    for doctype, entity in ((outside, "&s;"), (f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]>', "&l9;")):
        if where == "page":
            data, name = epub(doctype + PAGE.format(f"<p>Before {entity} after.</p>")), "a.epub"
        elif where == "package":
            data, name = epub(opf=doctype + package().replace("<manifest>", f"<x>{entity}</x><manifest>")), "a.epub"
        else:
            body = f"<w:body>{_p('Hi.')}<w:p><w:r><w:t>{entity}</w:t></w:r></w:p></w:body>"
            name = "a.docx"
            data = zipped({"word/document.xml": f"{doctype}<w:document {W}>{body}</w:document>"})
        try:
            found = str(texts(data, name))
        except ImportingError as error:
            found = str(error)
        assert "TOPSECRET" not in found and len(found) < 1000


@pytest.mark.parametrize(
    "href", ["../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "..\\..\\x", "%2e%2e/%2e%2e/x"]
)
def test_paths_out_of_the_archive_are_refused(href: str) -> None:
    opf = package().replace("a.xhtml", href)
    assert "outside itself" in said(epub(opf=opf), "a.epub") or "missing" in said(epub(opf=opf), "a.epub")


def test_protected_and_locked_books() -> None:
    method = '<EncryptedData><EncryptionMethod Algorithm="{}"/></EncryptedData>'
    locked = "<encryption>" + method.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc") + "</encryption>"
    assert "copy-protected" in said(epub(**{"META-INF__encryption.xml": locked}), "a.epub")
    fonts = "<encryption>" + method.format("http://www.idpf.org/2008/embedding") + "</encryption>"
    assert texts(epub(**{"META-INF__encryption.xml": fonts}), "a.epub") == ["Words here."]
    data = bytearray(epub())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        page = archive.getinfo("OEBPS/a.xhtml")
    data[page.header_offset + 6] |= 1  # "encrypted" in the local header, and then in the directory
    data[data.rfind(b"OEBPS/a.xhtml") - 46 + 8] |= 1
    assert "password" in said(bytes(data), "a.epub")


@pytest.mark.parametrize(
    "data, name, word",
    [
        (b"", "a.txt", "empty"),
        (b"\0\0\0", "a.txt", "empty"),
        (b"%PDF-1.7 ...", "a.epub", "PDF"),
        (b"\xd0\xcf\x11\xe0rest", "a.docx", "DOCX"),
        (b"{\\rtf1 hi}", "a.txt", "RTF"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 99, "a.txt", "picture"),
        (b"x" * 60 + b"BOOKMOBI" + b"\0" * 9, "a.mobi", "Kindle"),
        (b"Just text.", "a.epub", "not EPUB"),
        (bytes(range(256)) * 50, "a.txt", "not a text file"),
        (zipped({"photo.jpg": b"x"}), "a.zip", "no book"),
        (zipped({"x": b"x"}), "a.epub", "container.xml is missing"),
        (zipped({"x": b"x"}), "a.docx", "not a Word document"),
        (b"!!! ... ???", "a.txt", "nothing to speak"),
    ],
)
def test_what_is_no_book(data: bytes, name: str, word: str) -> None:
    assert word in said(data, name)


def test_a_wrong_ending_does_not_matter(small: dict[str, bytes]) -> None:
    for name, other in (("a.epub", "a.txt"), ("a.docx", "a.epub"), ("a.epub", "a.docx")):
        assert texts(small[name], name) == texts(small[name], other)
    assert texts(b"Plain words.", "a.rst") == ["Plain words."]


def test_pages_that_are_no_good_xml_are_read_as_browsers_do() -> None:
    page = (
        '<html><head><title/><script src="x"/></head><body><p>One & two<br>three <a id="x"/>four<p>five&nbsp;six</body>'
    )
    assert texts(epub(page), "a.epub") == ["One & two\nthree four", "five six"]


def test_text_outside_paragraphs_and_hidden_text_is_not_lost() -> None:
    table = "<table><tr><td>a</td><td>b</td></tr></table>"
    body = f"stray<p>one</p>tail<div>two<p>three</p>end</div><p hidden=''>off</p>{table}"
    found = texts(epub(PAGE.format(body)), "a.epub")
    assert found == ["stray", "one", "tail", "two", "three", "end", "off", "a\nb"]


def test_a_book_without_text_says_so() -> None:
    assert "no text" in said(epub(PAGE.format('<img src="a.png"/>')), "a.epub")
    assert "no text" in said(docx("<w:p/>"), "a.docx")


def test_deep_nesting_ends_in_a_sentence_or_in_text() -> None:
    deep = PAGE.format("<div>" * 3000 + "<p>deep</p>" + "</div>" * 3000)
    try:
        assert "deep" in str(texts(epub(deep), "a.epub"))
    except ImportingError as error:
        assert str(error).endswith(".")
    assert "nested too deeply" in said(("Top.\n\n" + "> " * 3000 + "deep\n").encode(), "a.md")
    assert texts(("> " * 20 + "deep\n").encode(), "a.md") == ["deep"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_encodings_of_western_text(encoding: str) -> None:
    text = "Café — “quoted”, naïve; it’s £5.\n" * 20
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030", "big5", "shift_jis"])
def test_encodings_of_chinese_and_japanese_text(encoding: str) -> None:
    text = "第一章　開始。「你好，世界」他說，我們走到了海邊。這是一個很長的故事。\n" * 20
    if encoding == "shift_jis":
        text = "第一章　始まり。「こんにちは」と彼は言った。私たちは海まで歩いていった。\n" * 20
    assert decode(text.encode(encoding))[0] == text


def test_simplified_chinese_of_old_files() -> None:
    text = "第一章 开始。“你好，世界。”他说，我们走到了海边。\n这是一个很长的故事。\n"
    assert decode(text.encode("gb18030"))[0] == text
    assert decode(text.encode("gbk") * 3000)[1] == "gb18030"


def test_damaged_unicode_says_so() -> None:
    assert "damaged" in said(b"\xff\xfe" + b"a\0b\0\0\xd8", "a.txt")


def test_pasting_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.book.importing.TEXT_CHARACTERS", 100)
    with pytest.raises(ImportingError, match="at most 100"):
        read_text("a" * 101)


def test_the_compressor_is_real() -> None:
    """The bombs above are compressed: else they would be refused for another reason."""
    assert len(zlib.compress(b"a " * 2**20)) < 2**13
