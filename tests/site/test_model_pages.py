"""Our own store's pages: models, ladders, claims and versions."""

from __future__ import annotations

import json
import re
from pathlib import Path

from helpers import stores
from helpers.site_pages import built, pages, rows
from machmeter.site import plots


def test_our_own_store_has_pages_of_models_and_versions(own: Path) -> None:
    assert (own / "model/box/ResNet50.html").is_file()
    assert (own / "versions.html").is_file()


def test_the_home_page_says_what_is_fastest_and_what_keeps_its_answers(own: Path) -> None:
    card = re.sub(r"<[^>]+>", " ", (own / "index.html").read_text().partition('class="card"')[2].partition("</li>")[0])
    words_of = " ".join(card.split())
    assert "×5.45 over eager fp32 openvino int8 batch 1" in words_of
    assert "181.8 images/s, p50 5.50 ms top-1 agreement 0.797, SQNR 6.3 dB" in words_of
    assert "same answers openvino fp32 batch 8: 57.1 images/s" in words_of
    assert "5 ok, 1 failed" in words_of


def test_the_table_of_a_model(own: Path) -> None:
    page = (own / "model/box/ResNet50.html").read_text()
    table = rows(page, "cells")
    assert table[1].startswith("openvino int8 – 1 – 181.8 5.45 3.27 5.50 – 0.797 6.3 ")
    assert len(table) == 6
    assert [row for row in rows(page, "without") if "failed" in row] == ["failed openvino int8 8 crashed (signal 11)"]


def test_many_disturbed_timings_are_said_once_and_marked(tmp_path: Path) -> None:
    stores.own(tmp_path / "results")
    (file,) = (tmp_path / "evidence/box").glob(f"{stores.commit(2)[:8]}-env.json")
    content = json.loads(file.read_text())
    for cell in ("eager.ResNet50(fp32, contiguous, 1)", "openvino.ResNet50(fp32, 1)", "openvino.ResNet50(int8, 1)"):
        seconds = {"median_seconds": 0.01, "sample_seconds": [0.01] * 5, "samples": 5}
        record = {"status": "ok", "benchmark": "time_forward", "started_at": 9e9, "order": 9, "disturbed_share": 0.4}
        content["runs"]["r"]["cells"][f"cpu.{cell}"] = {"p": record | seconds}
    file.write_text(json.dumps(content))
    site, _ = built(tmp_path)
    page = (site / "model/box/ResNet50.html").read_text()
    assert [banner for banner in re.findall(r'class="banner">([^<]*)<', page) if "disturbed" in banner] == [
        "3 of 5 timings were disturbed: other programs had more than a tenth of the CPUs meanwhile. "
        "They are marked in the table, and no gain is claimed from or over them."
    ]
    assert sum(" disturbed " in row for row in rows(page, "cells")) == 3


def test_the_ladder_marks_what_made_it_slower(own: Path) -> None:
    page = (own / "model/box/ResNet50.html").read_text()
    assert [re.split(" eager | openvino ", row)[0] for row in rows(page, "rungs")[1:4]] == [
        "PyTorch eager, fp32, batch 1 –",
        "batch 8 PyTorch eager, fp32, batch 1",
        "OpenVINO, the precision it chooses batch 8",
    ]
    assert "slower 0.91" in rows(page, "rungs")[2]
    assert "×2.00 on batch 8" in page


def test_published_claims_are_judged_by_what_was_measured_on_the_machine(own: Path, tmp_path: Path) -> None:
    """The CPU's ladder answers two; those about a GPU are told where there is one, with what is missing."""
    on_cpu = rows((own / "model/box/ResNet50.html").read_text(), "claims-table")
    assert len(on_cpu) == 3
    assert on_cpu[1].endswith("33.0 to 60.0 images/s (openvino), 1.8 times, over 3 rungs no")
    assert on_cpu[2].endswith("1 of 2 steps gain; slower: batch-8 0.91 × no")

    stores.gpu(tmp_path / "results")
    page = (built(tmp_path)[0] / "model/box/ResNet50.html").read_text()
    on_gpu = rows(page, "claims-table")
    assert on_gpu[1].startswith("TensorRT is ahead of PyTorch at every batch (published comparison")
    assert on_gpu[1].endswith(
        "batch 1: 2.00 × (1000 to 500 images/s); batch 8: 2.00 × (4000 to 2000 images/s); batch 32: 2.50 × (10000 to "
        "4000 images/s); batch 64: 3.00 × (12000 to 4000 images/s); batch 128: 4.00 × (16000 to 4000 images/s) yes"
    )
    assert on_gpu[2].endswith(" yes")
    assert on_gpu[3].endswith(
        "Missing: cuda.onnxruntime fp32 cuda batch 1; cuda.onnxruntime fp32 cuda batch 8; cuda.eager fp32 batch 1; "
        "and 1 more cannot say"
    )
    assert rows(page, "cells")[1].startswith("cuda.tensorrt fp16 – 128 ")
    assert 'benchmarks.html">cuda.tensorrt' not in page  # each cell leads to its own history


def test_what_nothing_beats_in_both_is_on_the_front() -> None:
    assert plots.pareto([(1, 5), (2, 4), (2, 3), (3, 1), (1, 5)]) == {0, 1, 3, 4}


def test_versions_are_in_their_order_with_their_change(own: Path) -> None:
    page = re.sub(r"<[^>]+>", " ", (own / "versions.html").read_text())
    assert re.search(r"2025\.0\.0\s+2025-02-06\s+125\.0.*2026\.1\.0\s+2025-02-06\s+166\.7\s+\+33\.3 %", page, re.DOTALL)


def test_a_change_of_a_library_is_marked_where_it_happened(own: Path) -> None:
    page = next(text for name, text in pages(own).items() if "openvino.ResNet50.time_forward" in name)
    assert "openvino 2026.1.0 → 2026.2.0" in page or "openvino 2026.1.0 -&gt; 2026.2.0" in page
    assert 'class="event"' in page


def test_the_method_is_that_of_the_metrics(own: Path) -> None:
    table = rows((own / "method.html").read_text(), "metrics-table")
    assert "top-1 agreement with fp32 track_top1_agreement fraction higher images with the same first class" in table[7]
