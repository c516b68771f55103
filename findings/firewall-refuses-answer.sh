#!/usr/bin/env bash
# Guess:        A 403 from a web application firewall means that the request never reached the service, so it is safe to
#               send it again.
# What happens: The rules also read answers. The backend performs a POST and answers with an HTML page with status 500
#               that shows a database error. The client gets a 403 in its place. The same error in JSON passes. At
#               paranoia level 2, every answer with a 5xx status becomes a 403.
# Versions:     Apache 2.4.71, ModSecurity 2.9.7 and the OWASP core rules 3.3.4 of Debian 12, installed by apt-get, at
#               their defaults except for SecRuleEngine On; Go 1.26.8 for the backend
# Who meets it: Clients of an API behind such a firewall that record a payment or a batch as not sent after a 403.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
debian apache2-bin libapache2-mod-security2 modsecurity-crs curl
chmod 755 "$dir"
port=$((20000 + RANDOM % 10000))
mkdir backend work
chown www-data work
cat >backend/main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"os"
	"path"
)

const sqlError = "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server " +
	"version for the right syntax to use near '' at line 1"

// answers has the content type and the body of the answer with status 500, by the last element of the path.
var answers = map[string][2]string{
	"sql-page": {"text/html", "<html><body><h1>Error</h1><p>" + sqlError + "</p></body></html>"},
	"sql-json": {"application/json", `{"message":"` + sqlError + `"}`},
	"page":     {"text/html", "<html><body><h1>Internal Server Error</h1></body></html>"},
}

func main() {
	panic(http.ListenAndServe(os.Args[1], http.HandlerFunc(serve)))
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		return
	}
	fmt.Println("the backend performed POST", r.URL.Path)
	answer := answers[path.Base(r.URL.Path)]
	w.Header().Set("Content-Type", answer[0])
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprint(w, answer[1])
}
GO
(cd backend && GOWORK=off GOTOOLCHAIN=go1.26.8 go build -o run main.go)
backend/run 127.0.0.1:$port >>seen &
servers+=($!)
sed -e 's/^SecRuleEngine .*/SecRuleEngine On/' -e 's/^SecUnicodeMapFile /&\/etc\/modsecurity\//' \
	-e "s|^\(Sec[A-Za-z]*Dir\) .*|\1 $dir/work|" -e "s|^SecAuditLog .*|SecAuditLog $dir/audit|" \
	/etc/modsecurity/modsecurity.conf-recommended >modsecurity.conf
modules=/usr/lib/apache2/modules
cat >apache.conf <<CONF
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule proxy_module $modules/mod_proxy.so
LoadModule proxy_http_module $modules/mod_proxy_http.so
LoadModule unique_id_module $modules/mod_unique_id.so
LoadModule security2_module $modules/mod_security2.so
ServerName localhost
Listen 127.0.0.1:$((port + 1))
User www-data
Group www-data
DefaultRuntimeDir $dir/work
PidFile $dir/pid
ErrorLog $dir/errors
Include $dir/modsecurity.conf
SecRule REQUEST_FILENAME "@beginsWith /level-2/" "id:900000,phase:1,nolog,pass,setvar:tx.paranoia_level=2"
Include /usr/share/modsecurity-crs/owasp-crs.load
ProxyPass / http://127.0.0.1:$port/ retry=0
CONF
apache2 -d "$dir" -f "$dir/apache.conf" -DFOREGROUND &
servers+=($!)
url=http://localhost:$((port + 1))
curl -sS --retry 20 --retry-connrefused --retry-delay 1 $url >log 2>&1
for path in level-1/sql-page level-1/sql-json level-1/page level-2/page; do
	echo "the client got $(curl -sS -o /dev/null -w '%{http_code}' --json '{"amount":10}' $url/$path)" >>seen
done
cat seen
seen_is <<'END'
the backend performed POST /level-1/sql-page
the client got 403
the backend performed POST /level-1/sql-json
the client got 500
the backend performed POST /level-1/page
the client got 500
the backend performed POST /level-2/page
the client got 403
END
