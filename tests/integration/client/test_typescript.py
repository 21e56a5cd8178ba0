"""The TypeScript client: it compiles, and calls a running server. Needs node and tsc."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leaks import PATIENCE
from tests.programs import Embedded, Yard

SOURCE = Path(__file__).parents[3] / "clients" / "typescript"
pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("tsc")), reason="node and tsc (npm install -g typescript) are not there"
)
PROGRAM = """
import { ApiError, Scrapeyard } from "./dist/index.js";

const [server, shop] = process.argv.slice(2);
const yard = new Scrapeyard(server);
const page = await yard.scrape(`${shop}/product/1`);
const product = await yard.run("shop/product", { url: `${shop}/product/1` });
const items = Array.from({ length: 250 }, (_, n) => ({ item_id: `k${n}`, n }));
const job = await yard.call("create_job", { body: { scraper: "builtin/echo", items } });
const names = [];
for await (const event of yard.events(job.id)) names.push(event.name);
const done = await yard.waitForJob(job.id);
const keys = [];
for await (const item of yard.items(job.id, { status: ["success"] })) keys.push(item.id);
let code = "";
try {
  await yard.run("no/such");
} catch (error) {
  if (error instanceof ApiError) code = `${error.status} ${error.code}`;
}
const told = { title: page.result.title, sku: product.result.sku, last: names.at(-1), status: done.status };
console.log(JSON.stringify({ ...told, items: keys.length, code }));
"""


@pytest.fixture
def yard(nothing_left: None) -> Iterator[Yard]:
    with Embedded() as yard:
        yield yard


def test_it_compiles_and_calls_a_server(yard: Yard, tmp_path: Path) -> None:
    subprocess.run(["tsc", "-p", str(SOURCE), "--outDir", str(tmp_path / "dist")], check=True, timeout=PATIENCE)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "program.js").write_text(PROGRAM)
    done = subprocess.run(
        ["node", "program.js", yard.urls[0], yard.shop.url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "title": "Aurora Lamp · Practice Shop",
        "sku": "LIG-0001",
        "last": "end",
        "status": "completed",
        "items": 250,
        "code": "404 scraper_not_found",
    }
