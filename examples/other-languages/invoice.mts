import type { paths } from "./openapi.d.ts";

const url = "http://127.0.0.1:8700";
const page = "http://127.0.0.1:8701";
const key = btoa(":merchant-api-key");

type Tokenize = paths["/pg/tokenize"]["post"];
type Card = Tokenize["requestBody"]["content"]["application/json"];
type Token = Tokenize["responses"][200]["content"]["application/json"];

class Refused extends Error {}

async function call<T>(method: string, address: string, body?: unknown): Promise<T> {
  const answer = await fetch(address, {
    method,
    headers: { Authorization: `Basic ${key}`, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    redirect: "error",
    signal: AbortSignal.timeout(30_000),
  });
  if (!answer.ok) {
    throw new Refused(`status ${answer.status}: ${await answer.text()}`);
  }
  return (await answer.json()) as T;
}

const card: Card = { merchant_id: "100001", card_number: "4111111111111111", exp_date: "1230" };
const token = await call<Token>("POST", `${url}/pg/tokenize`, card);
if (token.rcode !== "000") {
  throw new Refused(token.rmsg);
}
console.log("stored", token.card_number);

await call("POST", `${page}/faults`, { kind: "drop after commit", operation: "invoices.send", times: 1 });
try {
  await call("POST", `${url}/platform/invoice/INV6001/send`);
} catch (error) {
  if (error instanceof Refused) {
    throw error;
  }
  console.log("no answer: it may have been sent");
}
const state = await call<{ commits: Record<string, number> }>("GET", `${page}/state`);
console.log("invoices sent:", state.commits["invoices.send"]);
