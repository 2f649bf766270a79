"""Put the present source of the examples into CONTRIBUTING.md."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- source: (\S+) -->\n```python\n).*?(```\n)", re.DOTALL)


def main() -> None:
    page = ROOT / "CONTRIBUTING.md"
    text = page.read_text(encoding="utf-8")

    def current(match: re.Match[str]) -> str:
        return match[1] + (ROOT / match[2]).read_text(encoding="utf-8") + match[3]

    page.write_text(BLOCK.sub(current, text), encoding="utf-8")


if __name__ == "__main__":
    main()
