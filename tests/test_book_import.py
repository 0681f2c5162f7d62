"""Import of books: the words that go in come out, in every format, and what is off is listed."""

from __future__ import annotations

import time

import pytest

from studio.book import manuscript as m
from studio.book.errors import BookError
from studio.book.headings import chapter_kind, is_scene_break, kind_of_title
from studio.book.importing import read_book, read_bytes, read_text
from studio.book.manuscript import Block, Manuscript, Section, count_words, letters, tidy
from tests import books

MAKERS = {
    "novel.txt": lambda novel: books.as_txt(novel).encode(),
    "novel.md": lambda novel: books.as_markdown(novel).encode(),
    "novel.epub": books.as_epub,
    "novel.docx": books.as_docx,
}


@pytest.fixture(scope="module")
def novel() -> books.Novel:
    return books.make_novel()


@pytest.fixture(scope="module")
def imported(novel: books.Novel) -> dict[str, Manuscript]:
    return {name: read_bytes(make(novel), name) for name, make in MAKERS.items()}


def spoken(manuscript: Manuscript) -> list[str]:
    return [block.text for section in manuscript.sections for block in section.spoken if block.kind != "scene"]


def blocks_of_kind(manuscript: Manuscript, kind: str) -> list[str]:
    return [block.text for section in manuscript.sections for block in section.blocks if block.kind == kind]


def test_the_novel_is_as_long_as_a_book(novel: books.Novel) -> None:
    assert len(novel.chapters) == 20
    assert len(books.words(novel.spoken())) > 60_000


@pytest.mark.parametrize("name", MAKERS)
def test_words_in_are_words_out(name: str, novel: books.Novel, imported: dict[str, Manuscript]) -> None:
    assert books.words(spoken(imported[name])) == books.words(novel.spoken())


@pytest.mark.parametrize("name", MAKERS)
def test_every_chapter_is_found_by_its_title(name: str, novel: books.Novel, imported: dict[str, Manuscript]) -> None:
    titles = [section.title for section in imported[name].sections if section.on]
    assert titles == [chapter.title for chapter in novel.chapters]
    assert imported[name].title == books.TITLE


@pytest.mark.parametrize("name", MAKERS)
def test_notes_are_kept_off_and_counted(name: str, novel: books.Novel, imported: dict[str, Manuscript]) -> None:
    notes = blocks_of_kind(imported[name], "note")
    assert books.words([note.split("] ")[-1] for note in notes]) == books.words(novel.notes())
    listed = sum(words for _, kind, words in imported[name].left_out() if kind == "note")
    assert listed == sum(count_words(note) for note in notes)


@pytest.mark.parametrize("name", MAKERS)
def test_scene_breaks_are_found(name: str, novel: books.Novel, imported: dict[str, Manuscript]) -> None:
    wanted = sum(paragraph.kind == "scene" for chapter in novel.chapters for paragraph in chapter.paragraphs)
    assert len(blocks_of_kind(imported[name], "scene")) == wanted


def test_verse_keeps_its_lines(novel: books.Novel, imported: dict[str, Manuscript]) -> None:
    verse = next(p.text for c in novel.chapters for p in c.paragraphs if p.kind == "verse")
    for manuscript in imported.values():
        assert verse in spoken(manuscript)


def test_front_matter_contents_and_page_numbers_of_an_epub_are_off(imported: dict[str, Manuscript]) -> None:
    off = {section.kind for section in imported["novel.epub"].sections if not section.on}
    assert off == {"front matter", "legal", "contents"}
    assert len(blocks_of_kind(imported["novel.epub"], "page number")) > 20
    assert imported["novel.epub"].author == books.AUTHOR
    assert imported["novel.epub"].language == "en"


def test_running_headers_of_a_docx_are_listed_and_deleted_text_is_not(imported: dict[str, Manuscript]) -> None:
    docx = imported["novel.docx"]
    assert ("Headers and footers", "furniture", 5) in docx.left_out()
    assert "never printed" not in str(docx)


@pytest.mark.slow
def test_time_is_linear_in_the_length() -> None:
    def seconds(words_each: int, name: str) -> float:
        data = MAKERS[name](books.make_novel(chapters=2, words_each=words_each))
        times = []
        for _ in range(3):
            began = time.process_time()
            read_bytes(data, name)
            times.append(time.process_time() - began)
        return min(times)

    for name in MAKERS:
        assert seconds(30_000, name) < 20 * seconds(3000, name) + 0.1, name  # 10 times the text; 100 if quadratic


# ------------------------------------------------------------------------------------------------- plain text


def test_paragraphs_without_empty_lines_are_lines() -> None:
    text = "第一章 开始\n　　他走了。天很黑，路很长，没有人说话。\n　　她来了。\n第二章\n　　完。\n"
    sections = read_text(text).sections
    assert [section.title for section in sections] == ["第一章 开始", "第二章"]
    assert [block.text for block in sections[0].blocks] == [
        "第一章 开始", "他走了。天很黑，路很长，没有人说话。", "她来了。"
    ]  # fmt: skip


def test_broken_lines_are_joined_without_changing_a_character() -> None:
    text = (
        "Chapter 1\n\nA well-\nknown road, and\nnothing else but the\nsea.\n\n我们走到了\n海边。\n\nThe end\nof it.\n"
    )
    found = [block.text for block in read_text(text).sections[0].blocks]
    assert found == [
        "Chapter 1",
        "A well-known road, and nothing else but the sea.",
        "我们走到了海边。",
        "The end of it.",
    ]


@pytest.mark.parametrize(
    "line, kind",
    [
        ("CHAPTER IV", "chapter"),
        ("Chapter 12. Of Ships", "chapter"),
        ("Chapter Twenty-One", "chapter"),
        ("PART TWO", "part"),
        ("Epilogue", "chapter"),
        ("第十二回　風雪", "chapter"),
        ("第二部", "part"),
        ("楔子", "chapter"),
        ("Chapter 3 was the worst of all.", None),
        ("Part of him knew.", None),
        ("Chapter and verse", None),
        ("The mix was fine", None),
        ("第一章说的是一个人走了很远很远的路，最后回到了自己的家里。" * 4, None),
    ],
)
def test_headings(line: str, kind: str | None) -> None:
    assert chapter_kind(line) == kind


@pytest.mark.parametrize(
    "title, kind",
    [
        ("CONTENTS", "contents"),
        ("目录", "contents"),
        ("Notes", "notes"),
        ("Index.", "back matter"),
        ("Copyright", "legal"),
        ("Prologue", None),
        ("Note to Anna from me", "notes"),
        ("Noted", None),
    ],
)
def test_kinds_of_sections(title: str, kind: str | None) -> None:
    assert kind_of_title(title) == kind


@pytest.mark.parametrize(
    "line, found",
    [
        ("* * *", True),
        ("***", True),
        ("⁂", True),
        ("#", True),
        ("---", True),
        ("-", False),
        ("—", False),
        ("...", False),
        ("a * b", False),
        ("", False),
    ],
)
def test_scene_breaks(line: str, found: bool) -> None:
    assert is_scene_break(line) is found


def test_numbers_alone_are_pages_or_chapters_by_their_distance() -> None:
    page = "Some words of a page that is being read. " * 20
    pages = read_text("Chapter 1\n\n" + "\n\n".join(f"{page}\n\n{n}" for n in range(11, 19)))
    assert len(blocks_of_kind(pages, "page number")) == 8
    chapters = read_text("\n\n".join(f"{n}\n\n{page * 6}" for n in (1, 2, 3)))
    assert [section.title for section in chapters.sections] == ["1", "2", "3"]
    assert blocks_of_kind(read_text("Chapter 1\n\nHow many?\n\n42\n\nYes."), "page number") == []


def test_the_frame_of_project_gutenberg_is_off() -> None:
    text = (
        "The Project Gutenberg eBook of X\n\n*** START OF THE PROJECT GUTENBERG EBOOK X ***\n\n"
        "Chapter 1\n\nIt began.\n\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK X ***\n\nLicense text.\n"
    )
    manuscript = read_text(text)
    assert spoken(manuscript) == ["Chapter 1", "It began."]
    assert sum(words for *_, words in manuscript.left_out()) == count_words(text) - 4


# ------------------------------------------------------------------------------------------------- Markdown


def test_markdown_marks_are_read_and_words_stay() -> None:
    text = (
        "Title\n=====\n\nIntro with a [link](http://x.y) and `code`.\n\n## One\n\n- a *list*\n- of **two**\n\n"
        "> quoted\n\n    indented\n\n## Two\n\n| a | b |\n|---|---|\n| c | d |\n\n<div>html <b>too</b></div>\n"
    )
    manuscript = read_text(text, is_markdown=True)
    assert [section.title for section in manuscript.sections] == ["Title", "One", "Two"]
    assert (
        books.words(spoken(manuscript))
        == "Title Intro with a link and code One a list of two quoted indented Two a b c d html too".split()
    )


def test_a_note_that_no_mark_points_to_is_listed() -> None:
    manuscript = read_text("# A\n\nText.\n\n[^9]: Lost and found.\n", is_markdown=True)
    assert blocks_of_kind(manuscript, "note") == ["9. Lost and found."]


# ------------------------------------------------------------------------------------------------- sections


@pytest.fixture
def sections() -> list[Section]:
    one = Section("One", (Block("One", "heading"), Block("a b c"), Block("d e")))
    two = Section("Two", (Block("Two", "heading"), Block("a note", "note", False), Block("f")))
    return [one, two, Section("Index", (Block("x y z"),), "back matter", False)]


def all_letters(sections: list[Section]) -> dict[str, int]:
    return letters(block.text for section in sections for block in section.blocks)


def test_edits_of_sections_lose_nothing_and_leave_the_old_list_alone(sections: list[Section]) -> None:
    before = list(sections)
    for edited in (
        m.split(sections, 0, 1, "New"),
        m.merge(sections, 0),
        m.merge(sections, 1),
        m.rename(sections, 0, "Uno"),
        m.move(sections, 0, 2),
        m.switch(sections, 0, False),
        m.switch_block(sections, 1, 1, True),
    ):
        assert all_letters(edited) == all_letters(before)
        assert sections == before


def test_split_merge_move_rename(sections: list[Section]) -> None:
    parts = m.split(sections, 0, 1)
    assert [section.title for section in parts] == ["One", "a b c", "Two", "Index"]
    assert m.merge(parts, 0)[0].blocks == sections[0].blocks
    assert [s.title for s in m.move(sections, 2, 0)] == ["Index", "One", "Two"]
    assert m.rename(sections, 1, "  Zwei ")[1].title == "Zwei"


def test_what_was_off_stays_off_when_merged(sections: list[Section]) -> None:
    merged = m.merge(sections, 1)[1]
    assert merged.on and [block.text for block in merged.spoken] == ["Two", "f"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: m.split(s, 0, 0),
        lambda s: m.split(s, 0, 9),
        lambda s: m.merge(s, 2),
        lambda s: m.rename(s, 0, " "),
        lambda s: m.move(s, 0, 7),
        lambda s: m.switch(s, -1, True),
        lambda s: m.switch_block(s, 0, 5, True),
    ],
)
def test_impossible_edits_say_why(edit, sections: list[Section]) -> None:
    with pytest.raises(BookError, match="[.]$"):
        edit(sections)


def test_counting_words_in_mixed_scripts() -> None:
    assert count_words("It's well-known: 你好 world, 3.5!") == 7
    assert tidy("  a \t b \n\n c ") == "a b\nc"


def test_reading_from_disk(tmp_path) -> None:
    path = tmp_path / "A Tale.txt"
    path.write_text("Once there was a road.", encoding="utf-8")
    assert spoken(read_book(path)) == ["Once there was a road."]
    with pytest.raises(BookError, match="cannot be read"):
        read_book(tmp_path / "absent.txt")
