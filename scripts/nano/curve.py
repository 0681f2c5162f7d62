"""The learning curve: logs of training runs -> one table and one picture.

    python -m scripts.nano.curve [--runs RUN/log.csv ...] [--words words.json] --table curve.csv --picture curve.svg

``--table`` is read first if it exists, and the runs are added to it: the table travels with the project, the runs do
not.
``--words`` holds [[utterances, word errors in %, "how measured"], ...]; they are drawn as points.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

COLUMNS = ("run", "step", "examples", "diffusion", "stop", "attention", "phones")
LABELS = {"diffusion": "flow matching", "attention": "alignment (KL)", "phones": "phones heard"}
OLDER = {
    "step": "steps",
    "examples": "items",
    "diffusion": "diff",
    "attention": "att",
    "phones": "aux",
}  # names in the first runs' logs


def read(path: Path) -> list[dict[str, str]]:
    """Training lines of a table or of a run's log; the run is named after its folder where the file does not say."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row.get("kind", "train") == "train"]
    return [{name: _value(row, name, path) for name in COLUMNS} for row in rows]


def _value(row: dict[str, str], name: str, path: Path) -> str:
    return path.parent.name if name == "run" and "run" not in row else row.get(name) or row[OLDER[name]]


def write(rows: list[dict[str, str]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw(rows: list[dict[str, str]], words: list[list], path: Path) -> None:
    """Losses on the left scale, word errors as points on the right one, over utterances seen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # the same picture from the same table; text as text
    matplotlib.rcParams.update({"svg.hashsalt": "nano", "svg.fonttype": "none"})
    figure, losses = pyplot.subplots(figsize=(7.2, 3.6), layout="constrained")
    seen = [float(row["examples"]) / 1000 for row in rows]
    for name, label in LABELS.items():
        losses.plot(seen, [float(row[name]) for row in rows], label=label, linewidth=1.2)
    losses.set(xlabel="utterances seen, thousands", ylabel="loss", ylim=(0, 2))
    losses.grid(alpha=0.3)
    errors = losses.twinx()
    errors.plot([w[0] / 1000 for w in words], [w[1] for w in words], "ko", markersize=4, label="word errors (right)")
    errors.set(ylim=(0, 100), ylabel="word errors, %")
    lines = losses.get_lines() + errors.get_lines()
    losses.legend(lines, [str(line.get_label()) for line in lines], fontsize=8, loc="upper right")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, nargs="*", default=[])
    parser.add_argument("--words", type=Path)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    rows = read(given.table) if given.table.is_file() else []
    known = {(row["run"], row["step"]) for row in rows}
    rows += [row for run in given.runs for row in read(run) if (row["run"], row["step"]) not in known]
    rows.sort(key=lambda row: int(row["examples"]))
    write(rows, given.table)
    if given.picture:
        draw(rows, json.loads(given.words.read_text()) if given.words else [], given.picture)


if __name__ == "__main__":
    main()
