import base64
import http.client
import json
import urllib.error
import urllib.request

URL = "http://127.0.0.1:8700"
PAGE = "http://127.0.0.1:8701"
KEY = base64.b64encode(b":merchant-api-key").decode()


def call(method, url, body=None):
    headers = {"Authorization": "Basic " + KEY, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:  # raises HTTPError unless the status is 2xx
        return json.load(answer)


card = {"merchant_id": "100001", "card_number": "4111111111111111", "exp_date": "1230"}
token = call("POST", URL + "/pg/tokenize", card)
if token["rcode"] != "000":
    raise SystemExit(token["rmsg"])
print("stored", token["card_number"])

call("POST", PAGE + "/faults", {"kind": "drop after commit", "operation": "invoices.send", "times": 1})
try:
    call("POST", URL + "/platform/invoice/INV6001/send")
except urllib.error.HTTPError as refusal:
    raise SystemExit(refusal.read().decode())
except (OSError, http.client.HTTPException):
    print("no answer: it may have been sent")
print("invoices sent:", call("GET", PAGE + "/state")["commits"]["invoices.send"])
