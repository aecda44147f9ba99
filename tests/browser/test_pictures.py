"""The pictures of README and docs show the dashboard as it is.

They are compared as a person sees them from afar: by the mean color of each square of 20 pixels, so
that other fonts, times and IDs do not matter, and what is missing, moved or oversized does.
"""

import base64
from pathlib import Path
from typing import Any

from playwright.async_api import Browser

from tests.browser.pictures import IMAGES, take_all
from tests.support.program import Http, Program

#: Of 255, in any channel: a square that differs by more is another one.
MAX_DIFFERENCE = 16
#: Share of the squares of a picture that may be others: texts have other lengths.
MAX_SHARE = 0.03

COMPARE = """async ([before, after, limit]) => {
  const SQUARE = 20;
  const squares = async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const { width, height } = image;
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, width, height).data;
    const columns = Math.ceil(width / SQUARE);
    const sums = new Float64Array(3 * columns * Math.ceil(height / SQUARE));
    const counts = new Uint32Array(sums.length / 3);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const square = columns * Math.floor(y / SQUARE) + Math.floor(x / SQUARE);
        const pixel = 4 * (y * width + x);
        for (let channel = 0; channel < 3; channel++) sums[3 * square + channel] += pixels[pixel + channel];
        counts[square] += 1;
      }
    }
    return { width, height, counts, means: sums.map((sum, at) => sum / counts[Math.floor(at / 3)]) };
  };
  const [one, other] = [await squares(before), await squares(after)];
  if (one.width !== other.width || one.height !== other.height) return 1;
  let others = 0;
  for (let square = 0; square < one.counts.length; square++) {
    const channels = [3 * square, 3 * square + 1, 3 * square + 2];
    if (channels.some((at) => Math.abs(one.means[at] - other.means[at]) > limit)) others++;
  }
  return others / one.counts.length;
}"""


async def test_the_pictures_of_the_docs_show_the_dashboard(
    browser: Browser, server: Program, tmp_path: Path
) -> None:
    """When this fails on purpose, `make pictures` renews them."""
    await take_all(browser, Http(server.session, server.url, "demo"), tmp_path)
    taken = {path.name for path in tmp_path.iterdir()}
    assert taken == {path.name for path in IMAGES.glob("*.png")}
    page = await browser.new_page()
    shares = {name: await compare(page, name, tmp_path) for name in sorted(taken)}
    await page.close()
    print(shares)
    assert {name: share for name, share in shares.items() if share > MAX_SHARE} == {}


async def compare(page: Any, name: str, folder: Path) -> float:
    """The share of the squares of a picture that are others now."""
    before, after = (
        base64.b64encode((place / name).read_bytes()).decode() for place in (IMAGES, folder)
    )
    return float(await page.evaluate(COMPARE, [before, after, MAX_DIFFERENCE]))
