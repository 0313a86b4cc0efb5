"""Made-up customer records for `examples.entities`: persons, and what clerks and web forms make of them.

Names and towns are common ones of Britain, put together by chance; any likeness is one.
"""

from __future__ import annotations

import random
import string

FIRST = """
James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph Jessica
Thomas Sarah Charles Karen Christopher Nancy Daniel Margaret Matthew Sandra Anthony Ashley Mark Kimberly Steven Emily
Andrew Donna Kenneth Michelle George Carol Joshua Amanda Kevin Melissa Brian Deborah Edward Stephanie Ronald Rebecca
Timothy Laura Jason Sharon Jeffrey Cynthia Ryan Kathleen
"""
LAST = """
Smith Jones Taylor Brown Williams Wilson Johnson Davies Robinson Wright Thompson Evans Walker White Roberts Green Hall
Wood Jackson Clarke Patel Khan Lewis James Phillips Mason Mitchell Rose Davis Rogers Hughes Edwards Turner Parker Cook
Collins Morris Bell Murphy Bailey Cooper Richardson Cox Howard Ward Watson Brooks Bennett Gray Price Sanders Myers Long
Foster Powell Jenkins Perry Russell Sullivan Fisher Henderson Coleman Simmons Patterson
"""
ROAD = "High Station Main Park Church London Victoria Manor Queens New Grange Kings Windsor Highfield Mill York Albert"
KIND = "Street Road Lane"
TOWN = "Leeds York Hull Ripon Selby Whitby Malton Skipton Otley Thirsk"
MISTAKES = {"typo": 6, "shortened": 3, "initial": 2, "swapped": 2, "digit": 2, "moved": 1, "married": 1}  # how often

Person = tuple[str, str, str, str, str]  # first name, surname, street, town, born


def make_records(persons: int, seed: int = 7) -> list[tuple[int, int, str, str, str, str]]:
    """(record, person, name, street, town, born) in no order; ``person`` is the truth, which no matcher may see."""
    chance = random.Random(seed)  # noqa: S311 - made-up data
    entered = []
    for person in range(persons):
        truth = _person(chance)
        for number in range(chance.choices((1, 2, 3, 4, 5), weights=(40, 30, 15, 10, 5))[0]):
            first, last, street, town, born = _mistaken(chance, truth) if number else truth
            entered.append((person, f"{first} {last}", street, town, born))
    chance.shuffle(entered)
    return [(record, *row) for record, row in enumerate(entered)]


def _person(chance: random.Random) -> Person:
    born = f"{chance.randint(1940, 2005)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    return _one(chance, FIRST), _one(chance, LAST), _address(chance), _one(chance, TOWN), born


def _address(chance: random.Random) -> str:
    return f"{chance.randint(1, 120)} {_one(chance, ROAD)} {_one(chance, KIND)}"


def _one(chance: random.Random, words: str) -> str:
    return chance.choice(words.split())


def _mistaken(chance: random.Random, truth: Person) -> Person:
    """The person with one to three mistakes."""
    first, last, street, town, born = truth
    for mistake in chance.choices(list(MISTAKES), weights=MISTAKES.values(), k=chance.randint(1, 3)):
        match mistake:
            case "typo" if chance.randrange(2):
                first = _typo(chance, first)
            case "typo":
                last = _typo(chance, last)
            case "shortened":
                street = street.replace("Street", "St").replace("Road", "Rd").replace("Lane", "Ln")
            case "initial":
                first = f"{first[0]}."
            case "swapped":
                year, month, day = born.split("-")
                born = f"{year}-{day}-{month}"
            case "digit":
                at = chance.choice((2, 3, 5, 6, 8, 9))  # the century is right
                born = born[:at] + chance.choice(string.digits) + born[at + 1 :]
            case "moved":
                street = _address(chance)
            case "married":
                last = _one(chance, LAST)
    return first, last, street, town, born


def _typo(chance: random.Random, word: str) -> str:
    """A letter too few, one too many, another one, or two that have changed places."""
    at = chance.randrange(len(word))
    before, here, after = word[:at], word[at], word[at + 1 :]
    letter = chance.choice(string.ascii_lowercase)
    swapped = before + after[:1] + here + after[1:]
    return chance.choice((before + after, before + letter + here + after, before + letter + after, swapped))
