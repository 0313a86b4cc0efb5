"""Make the notebooks anew, run them, keep what they print and draw: `python -m examples.notebooks [name ...]`.

Needs the extra ``notebooks``. What Spark writes to the error stream when it starts is not kept, nor are times of day
and versions, so that a notebook changes only where its module or its results do. Pictures are made small enough for
the web, and put into ``docs/images`` for the gallery.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

from examples.notebooks import FOLDER, NAMES, Cell, cells

LARGEST = (1400, 1170)  # pixels of a picture
IMAGES = FOLDER.parents[1] / "docs" / "images"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="examples; all of them by default")
    for name in parser.parse_args().name or NAMES:
        notebook = executed(cells(name))
        file = FOLDER / f"{name}.ipynb"
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        picture = notebook["cells"][-1]["outputs"][-1]["data"]["image/png"]
        (IMAGES / f"{name}.png").write_bytes(base64.b64decode(picture))
        print(f"{file.name}: {file.stat().st_size / 1000:,.0f} kB")


def executed(made: list[Cell]) -> dict[str, Any]:
    """The notebook of these cells with its outputs; raises ``CellExecutionError`` where a cell fails."""
    notebook = nbformat.v4.new_notebook(
        cells=[_new_cell(cell, f"cell-{number}") for number, cell in enumerate(made)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    os.environ["PYTHONWARNINGS"] = "ignore"  # of the kernel: what libraries say of each other is not the example's
    NotebookClient(notebook, timeout=600, record_timing=False).execute()
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [_kept(output) for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.validate(notebook)
    return dict(notebook)


def _new_cell(cell: Cell, name: str) -> Any:  # noqa: ANN401 - nbformat has no types
    make = nbformat.v4.new_markdown_cell if cell.kind == "markdown" else nbformat.v4.new_code_cell
    return make(source=cell.source, id=name)


def _kept(output: Any) -> Any:  # noqa: ANN401 - likewise
    picture = output.get("data", {}).get("image/png")
    if picture:
        image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
        image.thumbnail(LARGEST, Image.Resampling.LANCZOS)
        small = io.BytesIO()
        image.quantize(64, dither=Image.Dither.NONE).save(small, "png", optimize=True)
        output.data["image/png"] = base64.b64encode(small.getvalue()).decode()
    return output


if __name__ == "__main__":
    main()
