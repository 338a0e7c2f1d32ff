#!/usr/bin/env bash
# Installs what the tests need and the machine lacks; says nothing if there is nothing to do.
#   install.sh DIR    DIR gets victoria-logs and promtool, the packages go to the system
# Packages are installed as root only. What could not be had is named at the end, and is an
# error only under RWANNOTATE_REQUIRE_ALL=1: without it the tests concerned are left out.
set -uo pipefail

victorialogs=v1.52.2
dir=${1:?usage: install.sh DIR}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
missing=()

# updated runs apt-get update at most once.
updated() {
  [ "${lists:-}" = fresh ] && return
  apt-get update -qq >/dev/null && lists=fresh
}

# package NAME FILE: installs Debian package NAME unless FILE (a command or a path) is there.
package() {
  command -v "$2" >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && updated &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >"$log" 2>&1; then
    return
  fi
  missing+=("$1")
}

# promtool is taken out of its package, because installing that starts a Prometheus server.
prometheus_tool() {
  command -v promtool >/dev/null || [ -x "$dir/promtool" ] && return
  local tmp
  tmp=$(mktemp -d) || return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && updated &&
    (cd "$tmp" && apt-get download -qq prometheus >"$log" 2>&1 && dpkg-deb -x prometheus_*.deb .); then
    cp "$tmp/usr/bin/promtool" "$dir/"
  fi
  rm -rf "$tmp"
  [ -x "$dir/promtool" ] || missing+=(promtool)
}

# victoria_logs is built from source; with a warm build cache that takes a second.
victoria_logs() {
  command -v victoria-logs >/dev/null || [ -x "$dir/victoria-logs" ] && return
  GOFLAGS=-mod=mod GOBIN=$dir CGO_ENABLED=0 go install \
    "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@$victorialogs" >"$log" 2>&1 || missing+=(victoria-logs)
}

log=$(mktemp) && trap 'rm -f "$log"' EXIT
package ripgrep rg
package curl curl
package buildah buildah
package python3 python3
package chromium chromium
package systemd-journal-remote /lib/systemd/systemd-journal-remote
prometheus_tool
victoria_logs

[ ${#missing[@]} = 0 ] && exit 0
echo "not installed: ${missing[*]} (as root on Debian 'make tools' installs them); the tests that need them are left out" >&2
tail -n 5 "$log" >&2
[ "${RWANNOTATE_REQUIRE_ALL:-}" != 1 ]
