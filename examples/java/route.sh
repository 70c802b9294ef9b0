#!/usr/bin/env bash
# Routes keys by a plan in Java: build a plan, export it as text, and read it with the exported reader.
#   examples/java/route.sh      (needs adapt, and Java 17 or later with its compiler)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '%s\n' hot,50 warm,20 cold,10 user1,5 user2,5 user3,5 user4,5 > "$folder/counts.csv"
adapt --quiet partition build "$folder/counts.csv" --channels 3 -o "$folder/web.plan" > "$folder/built.txt"
adapt --quiet partition export "$folder/web.plan" --to plan -o "$folder/web.text" > "$folder/exported.txt"
cut -d, -f1 "$folder/counts.csv" > "$folder/keys.txt"
while read -r key; do printf '%s' "$key" | od -An -v -tx1 | tr -d ' \n'; echo; done < "$folder/keys.txt" > "$folder/hex.txt"
java "$folder/web.text/PlanReader.java" "$folder/web.text/plan.txt" < "$folder/hex.txt" | paste "$folder/keys.txt" - > "$folder/java.txt"
adapt partition route "$folder/web.plan" "$folder/keys.txt" > "$folder/adapt.txt"
cat "$folder/java.txt"
diff "$folder/java.txt" "$folder/adapt.txt" && echo "Java and adapt agree"
