"""Take the pictures of the lineage pages in README and docs: `./dev run python -m tools.lineage_pictures`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from testbed.lineage import dataset, run_event
from testbed.service import Client, running

IMAGES = Path(__file__).parent.parent / "docs" / "images"
LAKE = "s3://lake"
ORDERS = "/dataset?ns=s3%3A%2F%2Flake&name=clean%2Forders"
RAW = "/dataset?ns=s3%3A%2F%2Flake&name=raw%2Forders"


def _made(source: str, **columns: str) -> dict[str, Any]:
    fields = {
        column: {
            "inputFields": [
                {
                    "namespace": LAKE,
                    "name": source,
                    "field": field,
                    "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                }
            ]
        }
        for column, field in columns.items()
    }
    return {"fields": fields}


def _fill(client: Client) -> None:
    def here(name: str, fields: str | None = None, **facets: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
        facets["dataSource"] = {"name": "lake", "uri": LAKE}
        return dataset(f"{LAKE}|{name}", fields, **facets)

    checked = {"description": "One row for each order, checked and without duplicates."}
    columns = _made("raw/orders", order_id="id", customer="customer", city="city", amount="amount")
    queue = dataset("kafka://prod|orders-v1")
    client.tell(
        run_event("COMPLETE", 60, 1, job="ingest.orders", inputs=[queue],
                  outputs=[here("raw/orders", "id int, customer string, zip string, amount decimal")]),
        run_event("COMPLETE", 660, 2, job="ingest.orders", inputs=[queue],
                  outputs=[here("raw/orders", "id bigint, customer string, city string, amount decimal")]),
        run_event("COMPLETE", 720, 3, job="load.customers", outputs=[here("raw/customers", "id bigint")]),
        run_event("COMPLETE", 900, 4, job="clean.orders",
                  inputs=[here("raw/orders"), here("raw/customers")],
                  outputs=[here("clean/orders", "order_id bigint, customer string, city string, amount float",
                                columnLineage=columns, documentation=checked)]),
        run_event("COMPLETE", 960, 5, job="report.daily", inputs=[here("clean/orders")],
                  outputs=[here("marts/daily_revenue", "city string, revenue decimal",
                                columnLineage=_made("clean/orders", city="city", revenue="amount"))]),
        run_event("FAIL", 990, 6, job="train.churn", inputs=[here("clean/orders"), here("raw/customers")],
                  outputs=[here("models/churn")]),
    )  # fmt: skip


def main() -> None:
    """Fill a service with a small example, and take the pictures."""
    with (
        tempfile.TemporaryDirectory() as directory,
        running(f"sqlite:///{directory}/lineage.db", pages=True) as client,
        sync_playwright() as started,
    ):
        _fill(client)
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto(client.url + ORDERS)
        page.wait_for_selector("g.node.here")
        page.screenshot(path=IMAGES / "lineage-dataset.png", full_page=True)
        page.goto(client.url + RAW)
        page.set_viewport_size({"width": 1000, "height": 900})
        page.locator("#history").screenshot(path=IMAGES / "lineage-schema-diff.png")
        phone = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True)
        phone.goto(client.url + ORDERS)
        phone.wait_for_selector("g.node.here")
        phone.screenshot(path=IMAGES / "lineage-phone.png")
        browser.close()


if __name__ == "__main__":
    main()
