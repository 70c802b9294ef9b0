#!/usr/bin/env bash
# Build the JVM parts as a jar: jvm/build.sh [OUT.jar]
# ADAPT_KAFKA_JAR (kafka-clients) and ADAPT_FLINK_JAR (flink-dist) name the engines' jars; a part without its jar is left out.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${1:-$here/../build/adapt-jvm.jar}")
cd "$here"
for tool in javac jar; do
  if ! command -v "$tool" > /dev/null; then
    echo "no $tool on PATH: the JVM parts need a JDK, 17 or later" >&2
    exit 4
  fi
done
parts=(adapt/*.java) path=""
for engine in kafka flink; do
  name=ADAPT_${engine^^}_JAR
  if [ -n "${!name:-}" ]; then
    parts+=(adapt/"$engine"/*.java)
    path+=:${!name}
  else
    echo "left out adapt.$engine: set $name to the engine's jar" >&2
  fi
done
mkdir -p "$(dirname "$out")"
classes=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$classes"' EXIT
javac --release 11 -Xlint:all,-options,-classfile,-path -cp "$path" -d "$classes" "${parts[@]}"
jar --create --file "$classes/adapt.jar" --date 2020-01-01T00:00:00Z -C "$classes" adapt
mv "$classes/adapt.jar" "$out"
echo "wrote $out"
