#!/usr/bin/env bash
# Guess:        quicktype makes a text field of a JSON text, whatever the text says.
# What happens: If all samples are digits, its Python and C# have an integer inside and write the text anew. The
#               category code "0742" (veterinary services) is written back as "742". Its Go and TypeScript keep the
#               text. --no-integer-strings forbids it.
# Versions:     quicktype 26.0.0, Node 20, Python 3.11
# Who meets it: Whoever makes types from the examples of a payment service, with codes, ZIP codes or account numbers.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
debian python3
npm_install quicktype@26.0.0
echo '{"category":"5812"}' >sample.json
try() {
	npx --no-install quicktype --lang python --python-version 3.7 --top-level Payment "$@" --out payment.py sample.json
	cat >>payment.py <<-'PY'

		import json
		print(json.dumps(payment_to_dict(payment_from_dict({"category": "0742"}))))
	PY
	python3 payment.py
}
{
	echo "default: $(try)"
	echo "--no-integer-strings: $(try --no-integer-strings)"
	npx --no-install quicktype --lang csharp --top-level Payment sample.json | grep -oE 'public (long|string) Category'
	npx --no-install quicktype --lang go --top-level Payment sample.json | grep -oE 'Category +[a-z0-9]+'
} 2>&1 | tee seen
seen_is <<'END'
default: {"category": "742"}
--no-integer-strings: {"category": "0742"}
public long Category
Category string
END
