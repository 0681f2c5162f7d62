"""A novel of our own, made by rules from a seed, and its files: EPUB, DOCX, TXT, Markdown.

``make_novel()`` has 20 chapters and more than 60,000 words: dialogue, footnotes, scene breaks, verse, chapters in
Chinese, and lines of the kind that break readers of books.
"""

from __future__ import annotations

import io
import random
import re
import textwrap
import zipfile
from dataclasses import dataclass, field
from html import escape

TITLE, AUTHOR = "The Salt Road", "Nobody at All"


@dataclass
class Paragraph:
    text: str
    kind: str = "text"  # "text" | "scene" | "verse"
    note: str = ""  # a footnote at its end


@dataclass
class BookChapter:
    title: str
    paragraphs: list[Paragraph] = field(default_factory=list)
    chinese: bool = False


@dataclass
class Novel:
    title: str
    author: str
    chapters: list[BookChapter]

    def spoken(self) -> list[str]:
        """Everything that is to be heard, in order: headings and paragraphs, no footnotes."""
        return [text for c in self.chapters for text in [c.title, *(p.text for p in c.paragraphs if p.kind != "scene")]]

    def notes(self) -> list[str]:
        return [p.note for c in self.chapters for p in c.paragraphs if p.note]


def words(texts: list[str] | str) -> list[str]:
    """Every word in order, and every single character of scripts that do not part words."""
    joined = texts if isinstance(texts, str) else "\n".join(texts)
    return re.findall(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+", joined)


# ------------------------------------------------------------------------------------------------- the text

NAMES = ["Anna", "Tobias", "Mrs. Harrow", "Old Finch", "Captain Reed", "Lucy"]
WHO = ["the miller", "a grey dog", "the ferryman", "her brother", "the stranger", "a girl with a lamp", "Dr. Vane"]
DID = [
    "walked slowly down to",
    "looked back at",
    "had never trusted",
    "sang quietly about",
    "carried the salt past",
    "forgot",
]
WHERE = ["the harbour", "the old mill", "St. Bride's well", "the long road", "the burned orchard", "No. 7 Quay Street"]
HOW = [
    "before the rain came",
    "as if nothing had happened",
    "at 5 p.m. on Jan. 3",
    "for $3.50 and a loaf",
    "once more",
    "in 1887",
]
SAID = ["said", "asked", "answered", "whispered", "cried"]
QUOTES = [
    "I don't know",
    "Where have you been",
    "It's well-known, i.e. no secret",
    "Go on",
    "We can't stay here",
    "Listen",
]
HAN_WHO = ["老船长", "那个陌生人", "安娜", "李明", "磨坊主人", "小姑娘"]
HAN_DID = ["慢慢走向", "回头望着", "从来不相信", "悄悄唱起", "带着盐走过", "忘记了"]
HAN_WHERE = ["旧码头", "长长的大路", "烧毁的果园", "山下的村庄", "圣井旁边"]
HAN_HOW = ["在下雨之前", "好像什么都没有发生", "第二天早上", "在1887年", "又一次"]

ODD = [
    "See https://example.org/salt?road=1&x=2 or write to anna@example.org.",
    "He paid 1,234.56 crowns, i.e. 50% too much; J. R. Harrow kept the rest.",
    "Wait... what? No! Yes!! Well—perhaps…",
    "Ms. Reed’s ‘list’: (a) rope; (b) salt & vinegar; (c) 3/4 of a mile <of string>.",
    "Ein Müller, naïve façade, Ångström, ﬁne ligatures, e\u0301 and \u00e9.",
    "שלום means peace, and мир does, too.",
    "🙂 A smile 🙂 in the margin",
    "Rain. [pause 0.8] Then more rain. [voice: Anna] I saw it first. [/voice] Nobody else did.",
    "...",
    "Hmm.",
    "A" + "a" * 1199 + "h",
    " ".join(["and the road went on"] * 120) + ".",
]
HAN_ODD = [
    "他说：“第1章……真的吗？”然后笑了！",
    "「走吧」他说。『好』",
    "这是一个没有标点的长句子" * 30 + "。",
    "你好,world。Hello，世界！",
]


def make_novel(seed: int = 1, chapters: int = 20, words_each: int = 3200) -> Novel:
    rng = random.Random(seed)
    made = []
    for number in range(1, chapters + 1):
        chinese = number % 7 == 0
        title = f"第{number}章 盐路" if chinese else f"Chapter {number}: {rng.choice(WHERE).title()}"
        made.append(_chapter(rng, title, chinese, words_each, number))
    return Novel(TITLE, AUTHOR, made)


def _chapter(rng: random.Random, title: str, chinese: bool, size: int, number: int) -> BookChapter:
    chapter = BookChapter(title, chinese=chinese)
    odd = list(HAN_ODD if chinese else ODD)
    count = 0
    while count < size:
        paragraph = _han_paragraph(rng) if chinese else _paragraph(rng)
        if rng.random() < 0.02:
            paragraph.note = (
                f"A note about {rng.choice(WHERE)}, number {number}." if not chinese else "关于码头的注解。"
            )
        chapter.paragraphs.append(paragraph)
        count += len(words(paragraph.text))
        if rng.random() < 0.03:
            chapter.paragraphs.append(Paragraph("* * *", "scene"))
        if odd and rng.random() < 0.2:
            chapter.paragraphs.append(Paragraph(odd.pop()))
    chapter.paragraphs += [Paragraph(text) for text in odd]
    return chapter


def _sentence(rng: random.Random) -> str:
    text = f"{rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHERE)} {rng.choice(HOW)}"
    if rng.random() < 0.3:
        text += f", and {rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHERE)}"
    return text[0].upper() + text[1:] + rng.choice(["."] * 6 + ["!", "?", ";"])


def _paragraph(rng: random.Random) -> Paragraph:
    kind = rng.random()
    if kind < 0.3:
        quote = f"“{rng.choice(QUOTES)}{rng.choice([',', '!', '?'])}” {rng.choice(SAID)} {rng.choice(NAMES)}."
        return Paragraph(f"{quote} {_sentence(rng)}" if rng.random() < 0.5 else quote)
    if kind < 0.32:
        return Paragraph("\n".join(_sentence(rng)[:38].rstrip() for _ in range(4)), "verse")
    return Paragraph(" ".join(_sentence(rng) for _ in range(rng.randint(2, 9))))


def _han_sentence(rng: random.Random) -> str:
    return f"{rng.choice(HAN_WHO)}{rng.choice(HAN_HOW)}{rng.choice(HAN_DID)}{rng.choice(HAN_WHERE)}"


def _han_paragraph(rng: random.Random) -> Paragraph:
    if rng.random() < 0.3:
        return Paragraph(f"“{_han_sentence(rng)}。”{rng.choice(HAN_WHO)}说。")
    parts = [_han_sentence(rng) + rng.choice("，。。！？") for _ in range(rng.randint(2, 8))]
    return Paragraph("".join(parts)[:-1] + "。")


# ------------------------------------------------------------------------------------------------- files


def as_txt(novel: Novel) -> str:
    """As Project Gutenberg has them: lines of 76 characters, empty lines between paragraphs, notes after a chapter."""
    lines = [novel.title, "", f"by {novel.author}", "", ""]
    note = 0
    for chapter in novel.chapters:
        lines += [chapter.title, ""]
        notes: list[str] = []
        for paragraph in chapter.paragraphs:
            text = paragraph.text
            if paragraph.note:
                note += 1
                text += f"[{note}]"
                notes.append(f"[{note}] {paragraph.note}")
            width = 38 if chapter.chinese else 76
            lines += text.split("\n") if paragraph.kind == "verse" else _wrapped(text, width, chapter.chinese)
            lines.append("")
        for text in notes:
            lines += [text, ""]
    return "\n".join(lines)


def _wrapped(text: str, width: int, chinese: bool) -> list[str]:
    if chinese and " " not in text:
        return re.findall(rf".{{1,{width}}}(?![0-9A-Za-z])|.{{1,{width + 9}}}", text)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def as_markdown(novel: Novel) -> str:
    parts = [f"---\ntitle: {novel.title}\nauthor: {novel.author}\nlang: en\n---"]
    notes: list[str] = []
    for chapter in novel.chapters:
        parts.append(f"# {_marked(chapter.title)}")
        for paragraph in chapter.paragraphs:
            if paragraph.kind == "scene":
                parts.append("***")
                continue
            text = "\\\n".join(_marked(line) for line in paragraph.text.split("\n"))
            if paragraph.note:
                notes.append(f"[^{len(notes) + 1}]: {_marked(paragraph.note)}")
                text += f"[^{len(notes)}]"
            parts.append(re.sub(r"\b(salt|盐)\b", r"*\1*", text))
    return "\n\n".join([*parts, *notes]) + "\n"


def _marked(text: str) -> str:
    return re.sub(r"([\\`*_<>#&])", r"\\\1", text)


def as_epub(novel: Novel) -> bytes:
    """EPUB 3 with nav and NCX, cover, title page, copyright page, page numbers, notes, and a chapter in two files."""
    pages: dict[str, str] = {
        "cover.xhtml": _page("Cover", '<img src="cover.jpg" alt="The cover"/>', "cover"),
        "title.xhtml": _page("Title", f"<h1>{novel.title}</h1><p>{novel.author}</p>", "titlepage"),
        "copyright.xhtml": _page("Copyright", "<p>All rights reserved &copy; 2020&nbsp;Nobody.</p>", "copyright-page"),
    }
    contents = []
    for number, chapter in enumerate(novel.chapters, 1):
        name = f"text/c{number:02}.xhtml"
        contents.append((name, chapter.title))
        blocks = _epub_blocks(chapter, number)
        heading = f'<h2 id="top">{escape(chapter.title)}</h2>'
        if number == 2:
            half = len(blocks) // 2
            pages[name] = _page(chapter.title, heading + "\n".join(blocks[:half]), "chapter")
            pages["text/c02_split.xhtml"] = _page("", "\n".join(blocks[half:]), "")
        else:
            pages[name] = _page(chapter.title, heading + "\n".join(blocks), "chapter")
    return _epub(pages, contents, novel)


def _epub_blocks(chapter: BookChapter, number: int) -> list[str]:
    blocks: list[str] = []
    notes: list[str] = []
    for place, paragraph in enumerate(chapter.paragraphs):
        if paragraph.kind == "scene":
            blocks.append("<hr/>" if place % 2 else '<p class="break">* * *</p>')
            continue
        text = "<br/>".join(escape(line) for line in paragraph.text.split("\n"))
        text = text.replace("salt", "<i>sal</i>t").replace("长长", "<ruby>长<rt>cháng</rt></ruby>长")
        if paragraph.note:
            key = f"n{number}-{place}"
            mark = f'<a epub:type="noteref" href="#{key}">{len(notes) + 1}</a>'
            text += f"<sup>{mark}</sup>"
            notes.append(f'<aside epub:type="footnote" id="{key}"><p>{escape(paragraph.note)}</p></aside>')
        if place % 20 == 7:
            text += f'<span epub:type="pagebreak" id="p{number}-{place}">{number * 100 + place}</span>'
        blocks.append(f"<p>{text}</p>")
    return blocks + notes


def _page(title: str, body: str, kind: str) -> str:
    typed = f' epub:type="{kind}"' if kind else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:epub="http://www.idpf.org/2007/ops"><head><title>{escape(title)}</title>'
        f"<style>p {{{{ margin: 0 }}}}</style></head><body{typed}>\n{body}\n</body></html>"
    )


def _epub(pages: dict[str, str], contents: list[tuple[str, str]], novel: Novel) -> bytes:
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(pages)
    )
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(pages)))
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">x</dc:identifier>'
        f"<dc:title>{novel.title}</dc:title><dc:creator>{novel.author}</dc:creator><dc:language>en</dc:language>"
        f'</metadata><manifest>{items}<item id="nav" href="nav.xhtml" properties="nav" '
        'media-type="application/xhtml+xml"/><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        f'</manifest><spine toc="ncx">{spine}<itemref idref="nav"/></spine></package>'
    )
    entries = "".join(f'<li><a href="{name}#top">{escape(title)}</a></li>' for name, title in contents)
    nav = _page("Contents", f'<nav epub:type="toc"><h1>Contents</h1><ol>{entries}</ol></nav>', "toc")
    points = "".join(
        f'<navPoint id="p{n}"><navLabel><text>{escape(title)}</text></navLabel><content src="{name}"/></navPoint>'
        for n, (name, title) in enumerate(contents)
    )
    ncx = f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><navMap>{points}</navMap></ncx>'
    files = {f"OEBPS/{name}": text for name, text in pages.items()}
    files |= {"OEBPS/content.opf": package, "OEBPS/nav.xhtml": nav, "OEBPS/toc.ncx": ncx}
    return zipped({"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, **files})


CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def as_docx(novel: Novel) -> bytes:
    """Heading styles, footnotes, a running header with a page number, a deleted passage, a table of contents."""
    body = [_p(novel.title, "Title"), _p(f"by {novel.author}"), _p("Contents 1", "TOC1"), _p("Chapters 2", "TOC1")]
    notes: list[str] = []
    for chapter in novel.chapters:
        body.append(_p(chapter.title, "Heading1"))
        for paragraph in chapter.paragraphs:
            mark = ""
            if paragraph.note:
                notes.append(paragraph.note)
                mark = f'<w:r><w:footnoteReference w:id="{len(notes)}"/></w:r>'
            body.append(_p(paragraph.text, "", mark))
    body.append("<w:p><w:del><w:r><w:delText>never printed</w:delText></w:r></w:del></w:p>")
    foot = "".join(f'<w:footnote w:id="{n}">{_p(text)}</w:footnote>' for n, text in enumerate(notes, 1))
    foot = f'<w:footnote w:type="separator" w:id="0">{_p("")}</w:footnote>{foot}'
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in [("Title", "Title"), ("Heading1", "heading 1"), ("TOC1", "toc 1")]
    )
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f"<w:document {W}><w:body>{''.join(body)}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {W}>{styles}</w:styles>",
            "word/footnotes.xml": f"<w:footnotes {W}>{foot}</w:footnotes>",
            "word/header1.xml": f"<w:hdr {W}>{_p('The Salt Road, page 1')}</w:hdr>",
        }
    )


def _p(text: str, style: str = "", more: str = "") -> str:
    """One paragraph in runs of odd lengths, as Word has them."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    lines = []
    for line in text.split("\n"):
        runs = [line[start : start + 37] for start in range(0, len(line), 37)]
        lines.append("".join(f'<w:r><w:t xml:space="preserve">{escape(run)}</w:t></w:r>' for run in runs))
    return f"<w:p>{properties}{'<w:r><w:br/></w:r>'.join(lines)}{more}</w:p>"


def zipped(files: dict[str, str | bytes]) -> bytes:
    """A zip archive of these files, the same bytes every time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return buffer.getvalue()
