#!/bin/sh
# A browser for the tests of the report: Debian's chromium, where we may install it. Never fails;
# without one those tests are skipped, or fail if TEMPORALNMF_REQUIRE_BROWSER=1 (.ci/run).
for name in "${TEMPORALNMF_CHROMIUM:-chromium}" chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "No browser, and no right to install one: tests of the report in a browser are skipped."
  exit 0
fi
echo "Installing chromium for the tests of the report ..."
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -qq -y --no-install-recommends chromium"
$install >/dev/null 2>&1 || { apt-get update -qq && $install; } >/dev/null 2>&1 ||
  echo "chromium could not be installed."
