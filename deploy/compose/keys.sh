#!/bin/sh
# `make`: creates the admin key and the key of Prometheus, unless they are there. `show`: prints the admin key.
set -eu
umask 077
one() {
  test -s "$2" && return
  scrapeyard keys create "$1" --role "$3" --data-dir /var/lib/scrapeyard --json \
    | python3 -c 'import json, sys; print(json.load(sys.stdin)["secret"], end="")' > "$2.new"
  chmod "$4" "$2.new"
  mv "$2.new" "$2"
}
case "$1" in
  make)
    one admin /run/scrapeyard/admin.key admin 600
    one prometheus /run/prometheus/key viewer 644
    ;;
  show) cat /run/scrapeyard/admin.key && echo ;;
  *) echo "make or show" >&2 && exit 2 ;;
esac
