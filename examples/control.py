"""Who controls a company of which nobody holds half? Control through subsidiaries, in a register of shareholders.

    python -m examples.control [--out demo-output]        (or: make example NAME=control)

Whoever holds more than half of a company controls it, and votes with its shares as if they were its own (Mumick,
Pirahesh and Ramakrishnan 1990 made a query of it). So the shares of all that one controls add up, and what they add
up to may be control again. The register is invented, after what the press draws when a group collapses: a pyramid,
holdings that cross, a fund that stays at 24.9 % everywhere.

Look at ``percent > 50`` within the recursion: a sum is read while it grows. `ra.msum` may be, since each witness (here
a shareholder) counts once, with its best contribution: the sum only rises, and who has passed half stays above it.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import pyspark_paralagg as ra
from examples import layers, stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

REGISTER = """\
owner,company,percent
Familie Brandt,Brandt Holding,100
Brandt Holding,Nordwind Energie,62
Brandt Holding,Hansa Invest,51
Brandt Holding,Elbe Logistik,28
Nordwind Energie,Elbe Logistik,15
Nordwind Energie,Windpark Ost,40
Hansa Invest,Elbe Logistik,9
Hansa Invest,Hafen Digital,35
Elbe Logistik,Hafen Digital,20
Elbe Logistik,Kranbau Stralsund,55
Kranbau Stralsund,Windpark Ost,7
Hafen Digital,Windpark Ost,6
Meridian Fonds,Nordwind Energie,24.9
Meridian Fonds,Elbe Logistik,24.9
Meridian Fonds,Hafen Digital,24.9
Meridian Fonds,Windpark Ost,24.9
Erbin Lund,Lund Reederei,30
Lund Reederei,Rotes Kliff Hotels,55
Rotes Kliff Hotels,Lund Reederei,25
Lund Reederei,Sylt Fähren,26
Rotes Kliff Hotels,Sylt Fähren,26
"""
HALF = 50
GOLD, EMBER = "#ffd166", "#ff8f5a"


def add_up_votes(owns: DataFrame) -> DataFrame:
    """(owner, company, votes): percent that each owner holds by itself and through all that it controls."""
    shares = owns.toDF("parent", "child", "percent")
    return owns.select("owner", "company", F.col("owner").alias("by"), F.col("percent").alias("votes")).recursive_agg(
        keys=["owner", "company"],
        aggs={"votes": ra.msum("votes", "by")},
        step=lambda held: (
            held.filter(F.col("votes") > HALF)
            .join(shares, held.company == shares.parent)
            .select(held.owner, shares.child.alias("company"), shares.parent.alias("by"), shares.percent.alias("votes"))
        ),
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The register: who holds how many percent of whom.
    register = pd.read_csv(io.StringIO(REGISTER))
    owns = spark.createDataFrame(register, "owner string, company string, percent double")

    # %% Votes, with those of all that one controls. ● marks control that no line of the register shows.
    votes = add_up_votes(owns)
    direct = owns.withColumnRenamed("percent", "direct")
    found = votes.join(direct, ["owner", "company"], "left").fillna(0.0, ["direct"]).toPandas()
    controlled = found[found.votes > HALF].sort_values(["owner", "votes", "company"], ascending=[True, False, True])
    print_control(controlled)

    # %% The group of the family, as a picture. Everybody else on it has no say.
    picture = out / "control.png"
    draw_group(picture, register, controlled, "Familie Brandt")
    return picture


def print_control(controlled: pd.DataFrame) -> None:
    """Print a line for each company that somebody controls."""
    print(f"    {'who':<20}{'controls':<20}{'votes':>8}{'by itself':>12}\n  {'─' * 60}")
    for owner, company, votes, direct in controlled[["owner", "company", "votes", "direct"]].itertuples(index=False):
        mark = " " if direct > HALF else "●"
        print(f"  {mark} {owner:<20}{company:<20}{votes:>6.1f} %{direct:>10.1f} %")


def draw_group(file: Path, register: pd.DataFrame, controlled: pd.DataFrame, head: str) -> None:
    """Draw all shareholdings: in colour what ``head`` controls, and the holdings that its control is made of."""
    votes = controlled[controlled.owner == head].set_index("company").votes
    largest = register.groupby("company").percent.max()
    boxes, arrows = [], []
    for name in dict.fromkeys([*register.owner, *register.company]):
        text = f"{name}\n{votes[name]:.0f} % of the votes" if name in votes else name
        colour = layers.QUIET
        if name in votes or name == head:
            colour = EMBER if largest.get(name, 100) <= HALF else GOLD
        boxes.append(layers.Box(name, text, colour))
    for owner, company, percent in register.itertuples(index=False):
        counts = company in votes and (owner == head or owner in votes)
        arrows.append(layers.Arrow(owner, company, f"{percent:g} %", GOLD) if counts else layers.Arrow(owner, company))
    subtitle = f"Yellow: {head} controls it by one holding. Orange: only by the sum of several"
    layers.draw(file, boxes, arrows, "Who controls whom?", subtitle, "Invented register")


if __name__ == "__main__":
    stage.run(__doc__, tell)
