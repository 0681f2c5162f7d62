"""Which seeds did well for a voice: a small table below the history."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from studio.reviews import SeedScore
from studio.ui.i18n import say
from studio.ui.markup import icon, tag
from studio.ui.take_markup import do


def seeds_view(scores: Sequence[SeedScore], name: str, voice: str, language: str) -> str:
    """The seeds that somebody liked, the best first; a sentence when nothing has been said about any."""
    liked = [score for score in scores if score.score > 0]
    title = tag("h2", say(language, "seeds_of", voice=escape(name)), class_="vx-heading")
    if not liked:
        return tag(
            "section",
            title,
            tag("p", say(language, "seeds_none", voice=escape(name)), class_="vx-same"),
            class_="vx-seeds",
        )
    names = ["seed", "seeds_takes", "rating", "seeds_starred", "seeds_picked"]
    head = tag("tr", *(tag("th", say(language, key), scope="col") for key in names), tag("td"))
    return tag(
        "section",
        title,
        tag("table", head, *(_row(score, voice, language) for score in liked), class_="vx-table vx-num"),
        class_="vx-seeds",
    )


def _row(score: SeedScore, voice: str, language: str) -> str:
    words = say(language, "seeds_use")
    use = do("use_seed", words, icon("pin"), words, class_="vx-link", data_seed=score.seed, data_voice=voice)
    rating = f"{score.rating:.1f}" if score.rating else "–"
    cells = [str(score.seed), str(score.takes), rating, str(score.starred), str(score.picked)]
    return tag("tr", *(tag("td", cell) for cell in cells), tag("td", use))
