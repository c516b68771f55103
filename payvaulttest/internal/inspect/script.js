'use strict';

// The script shows all text with textContent, so that no text of a request can be parsed as HTML.

const shown = 200; // maximum number of rows in the list of requests
const at = (id) => document.getElementById(id);
let source;
let start; // identifies the emulator's list of requests; after a restart or a clear, numbers begin again at 1
let listed; // value of start for the requests that the page shows
let fresh = true; // the next batch replaces the list of requests
let chosen; // number of the request whose details the page shows
let fading; // timer that removes the message of say
let typing; // timer that starts the search after the last key
let held; // batches that wait while the main mouse button is pressed: new rows would move the row under the pointer
let holding; // timer that shows these batches even if the button stays pressed

function make(name, props = {}, ...children) {
  const element = Object.assign(document.createElement(name), props);
  element.append(...children);
  return element;
}

// say shows a message about the last action. It removes the message after ten seconds, unless bad is set.
function say(text, bad = false) {
  clearTimeout(fading);
  if (text && !bad) fading = setTimeout(say, 10000, '');
  at('said').textContent = text;
  at('said').classList.toggle('bad', bad);
}

async function call(path, options) {
  const response = await fetch(path, options).catch(() => { throw new Error('The emulator does not answer'); });
  const body = response.status === 204 ? null : await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}

// copy puts a text on the clipboard.
async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    say(done + (text.includes('fillIn') ? ': write what is meant in place of fillIn' : ''));
  } catch {
    say('The browser does not let this page copy: select the text', true);
  }
}

function copier(text, label, ariaLabel, done) {
  return make('button', {type: 'button', textContent: label, ariaLabel, onclick: () => copy(text, done)});
}

// keepFocus changes the page. If the change removes or hides the element with the focus, the focus moves to the
// part of the page that contained the element.
function keepFocus(change) {
  const had = document.activeElement;
  const part = had.parentElement?.closest('[tabindex]');
  change();
  if (!had.checkVisibility()) part?.focus({preventScroll: true});
}

// Connect

async function showConnect() {
  const {url, accounts, curl, go} = await call('connection');
  const row = (term, text) => [make('dt', {textContent: term}), make('dd', {},
    make('code', {textContent: text}), copier(text, 'Copy', 'Copy: ' + term, 'Copied'))];
  at('keys').replaceChildren(...row('base URL', url), ...accounts.flatMap((account) => row(
    (account.partner ? `partner ${account.merchant_id}, vendor ${account.vendor_id}` : `merchant ${account.merchant_id}`)
      + (account.acts_for ? `, acts for ${account.acts_for.join(', ')}` : ''), account.api_key)));
  const first = (name, text) => make('div', {}, make('strong', {textContent: 'A first request: ' + name}),
    code(text, name, name === 'curl' ? 'shell' : ''), make('div', {className: 'bar'},
      copier(text, 'Copy', 'Copy a first request: ' + name, 'Copied')));
  at('first').replaceChildren(first('curl', curl), first('Go', go));
}

const named = (operation) => operation === 'none' ? 'no operation' : operation;

// Requests

const paused = () => at('pause').ariaPressed === 'true';

function connect() {
  source?.close();
  held &&= []; // the waiting batches belong to the previous filter
  fresh = true;
  const query = new URLSearchParams({
    operation: at('only').value, failed: at('failed').checked, search: at('search').value,
  });
  source = new EventSource('events?' + query);
  source.onopen = showConnection;
  source.onerror = ({target}) => {
    const over = target.readyState === EventSource.CLOSED;
    at('connection').textContent = over
      ? 'not connected: too many pages are open, or the emulator has ended' : 'connecting again';
    if (over) setTimeout(() => { if (target === source && !document.hidden) connect(); }, 5000);
  };
  source.onmessage = (event) => {
    const batch = JSON.parse(event.data);
    if (held) held.push(batch);
    else if (!paused()) addRequests(batch);
    refreshSoon();
  };
}

function showConnection() {
  const others = listed && listed !== start ? '; these are the requests of before the list was cleared or the emulator started' : '';
  at('connection').textContent = paused() ? 'paused' + others : 'live';
}

at('live').onpointerdown = ({button}) => {
  if (button !== 0 || paused()) return;
  held ??= [];
  clearTimeout(holding);
  holding = setTimeout(release, 1500);
};
const released = () => setTimeout(release); // runs release after the click has ended
for (const event of ['pointerup', 'pointercancel', 'contextmenu', 'blur']) addEventListener(event, released);

function release() {
  const batches = held ?? [];
  held = undefined;
  if (!paused()) batches.forEach(addRequests);
}

// A hidden page closes its event stream, because a browser opens at most six connections to a host.
document.onvisibilitychange = () => {
  if (!document.hidden) return connect();
  source.close();
  at('connection').textContent = 'not connected while out of sight';
};

function addRequests(batch) {
  const body = at('live').tBodies[0];
  keepFocus(() => {
    if (batch.start !== listed) {
      at('detail').hidden = fresh = true;
      chosen = 0;
    }
    if (fresh) body.replaceChildren();
    body.prepend(...batch.requests.reverse().map(requestRow));
    while (body.rows.length > shown) body.lastChild.remove();
  });
  listed = batch.start;
  fresh = false;
  const filtered = at('only').value || at('failed').checked || at('search').value;
  at('none').hidden = body.rows.length > 0;
  at('none').textContent = batch.total ? 'No request that fits the filter.' : 'No request yet.';
  at('first').hidden = batch.total > 0;
  const number = (count) => count.toLocaleString('en');
  const rest = batch.matching - body.rows.length;
  at('count').textContent = `${number(batch.total)} in all${filtered ? `, ${number(batch.matching)} fit` : ''}`
    + (rest ? `, ${number(rest)} not shown` : '');
}

function requestRow(request) {
  const name = named(request.operation);
  const choose = make('button', {type: 'button', className: 'link', onclick: (event) => choosing(request, name, choose, event.detail === 0)});
  if (request.number === chosen) choose.ariaCurrent = 'true';
  if (request.failed) choose.append('✗ ');
  name.split(/(?<=[._])/).forEach((part) => choose.append(part, make('wbr')));
  return make('tr', {className: request.failed ? 'bad' : ''},
    make('td', {textContent: clock(request.time)}),
    make('td', {}, choose),
    make('td', {className: 'wide', textContent: request.merchant_id || '–'}),
    make('td', {textContent: request.status || 'none'}),
    make('td', {className: 'wide', textContent: request.code ?? '–'}),
    make('td', {className: 'wide', textContent: request.milliseconds.toFixed(1)}),
    make('td', {textContent: request.fault}));
}

const clock = (time) => new Date(time).toLocaleTimeString('en', {
  hourCycle: 'h23', hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3,
});

function choosing(request, name, button, byKeyboard) {
  const detail = at('detail');
  chosen = request.number;
  document.querySelector('#live [aria-current]')?.removeAttribute('aria-current');
  button.ariaCurrent = 'true';
  const facts = {
    request: `${request.number}, at ${clock(request.time)}`,
    route: request.operation === 'none' ? 'none' : `${request.method} ${request.route}`,
    merchant: request.merchant_id || 'none: the key is not known',
    answer: request.status ? `${request.status}, code ${request.code ?? 'none'}` : 'none',
    fault: request.fault || 'none',
    outcome: (request.performed ? 'performed' : 'not performed') + (request.why ? `: ${request.why}` : ''),
    duration: `${request.milliseconds.toFixed(1)} ms`,
    body: `${request.request_bytes} bytes`,
  };
  detail.querySelector('h3').textContent = name;
  detail.querySelector('dl').replaceChildren(...Object.entries(facts).flatMap(([term, text]) =>
    [make('dt', {textContent: term}), make('dd', {textContent: text})]));
  const texts = request.path
    ? {path: `${request.method} ${request.path}`, body: pretty(request.body ?? ''), answer: pretty(request.answer ?? '')}
    : {'shape of the request': JSON.stringify(request.shape ?? {}, null, 2)};
  at('note').hidden = Boolean(request.path);
  at('shown').replaceChildren(...Object.entries(texts).flatMap(([term, text]) => [
    make('h4', {textContent: term}), make('pre', {tabIndex: 0, ariaLabel: term, textContent: text || 'none'})]));
  at('curl').hidden = !request.curl;
  at('curl').onclick = () => copy(request.curl, 'Copied the curl command');
  detail.hidden = false;
  const {top, bottom} = detail.getBoundingClientRect();
  const below = top >= at('live').parentElement.getBoundingClientRect().bottom; // the details are below the list, not beside it
  const away = below && bottom > innerHeight;
  if (away || byKeyboard) detail.querySelector('h3').focus();
  if (away) detail.scrollIntoView();
}

// pretty formats JSON with one value per line. It changes only white space, so numbers keep all digits.
function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  return text.replace(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{[\]},:]|\s+/g, (token) => {
    if (token === '{' || token === '[') return depth++, token + line();
    if (token === '}' || token === ']') return depth--, line() + token;
    if (token === ',') return token + line();
    if (token === ':') return ': ';
    return token.trim();
  });
}

// The Escape key moves the focus from the details of a request back to its row.
at('detail').onkeydown = ({key}) => {
  if (key === 'Escape') (document.querySelector('#live [aria-current]') ?? at('live').parentElement).focus();
};

// State: loaded at most once a second

let waiting = 0;

function refreshSoon() {
  waiting ||= setTimeout(() => { waiting = 0; refresh(); }, 1000);
}

async function refresh() {
  try {
    const state = await call('state');
    const another = start !== state.start;
    start = state.start;
    if (another && paused()) showConnection();
    if (another) await showConnect();
    at('bodies').checked = state.bodies;
    at('bodies-note').textContent = state.bodies
      ? 'are shown and kept as they are sent, card numbers too: send made-up data only'
      : 'of requests to come, for made-up data only';
    fill(at('only'), [...state.operations, 'none']);
    fill(at('target'), state.operations);
    keepFocus(() => {
      if (another) at('armed').replaceChildren();
      showArmed(state.faults);
    });
    showPending(state.pending);
    const commits = Object.entries(state.commits).sort();
    showTable({name: 'performed operations', total: commits.length, columns: ['operation', 'times'], rows: commits});
    state.tables.forEach(showTable);
  } catch {
    if (!document.hidden) connect(); // closes the stream first: the server of the page may be waiting for its end
  }
}

function showPending(requests) {
  const oldest = requests.slice(0, 5).map(({operation, fault, seconds}) =>
    `${named(operation)}${fault && `, ${fault}`}, for ${Math.round(seconds)} s`);
  at('pending').textContent = requests.length ? `${requests.length} not answered yet: ${oldest.join('; ')}` : '';
}

// fill adds the names that select does not offer yet. An operation that Server.Handle adds later is at the end.
function fill(select, names) {
  const offered = new Set([...select.options].map((option) => option.value));
  select.append(...names.filter((name) => !offered.has(name)).map((name) => new Option(named(name), name)));
}

const drawn = {}; // JSON of each table that the page shows, by the ID of its element

function showTable(table) {
  const id = 'table-' + table.name.replaceAll(' ', '-');
  if (!at(id)) {
    const head = make('tr', {}, ...table.columns.map((name) =>
      make('th', {scope: 'col', textContent: name.replaceAll('_', ' ')})));
    const region = {className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: table.name};
    at('stored').append(make('details', {id}, make('summary'),
      make('div', region, make('table', {},
        make('caption', {className: 'unseen', textContent: table.name}), make('thead', {}, head), make('tbody')))));
  }
  const text = JSON.stringify(table);
  if (drawn[id] === text) return; // keeps the text that the user has selected in the table
  drawn[id] = text;
  const newest = table.rows.length < table.total ? `, the newest ${table.rows.length} shown` : '';
  at(id).querySelector('summary').textContent = `${table.name}: ${table.total}${newest}`;
  at(id).querySelector('tbody').replaceChildren(...table.rows.map((row) =>
    make('tr', {}, ...row.map((cell, i) => make('td', {textContent: table.columns[i] === 'time' ? clock(cell) : cell})))));
}

// Faults

function showArmed(faults) {
  at('unarmed').hidden = faults.length > 0;
  at('clear').hidden = at('strikes').hidden = faults.length === 0;
  at('strikes').textContent = faults.length === 1 ? '1 fault armed' : `${faults.length} faults armed`;
  for (const item of [...at('armed').children]) {
    if (!faults.some((fault) => 'armed-' + fault.id === item.id)) item.remove();
  }
  for (const fault of faults) {
    const id = 'armed-' + fault.id;
    if (!at(id)) {
      const disarm = () => act('DELETE', 'faults/' + fault.id, null, 'Disarmed');
      at('armed').append(make('li', {id}, make('div'), goCode(fault),
        make('div', {className: 'bar'},
          make('button', {type: 'button', textContent: 'Disarm', ariaLabel: 'Disarm: ' + fault.kind, onclick: disarm}),
          goCopier(fault))));
    }
    const left = fault.left < 0 ? 'until it is disarmed' : `${fault.left} left`;
    const target = fault.operation || 'every request';
    const kind = [fault.kind, fault.rate && `${fault.rate} a second`, fault.status, fault.delay,
      fault.after_commit && 'when performed', fault.skip && `after ${fault.skip} others`].filter(Boolean).join(' ');
    at(id).firstChild.textContent = `${kind}, ${target}: struck ${fault.struck}, ${left}`;
  }
}

let wanted; // query of the newest request for presets

async function showPresets() {
  const query = new URLSearchParams({operation: at('target').value, times: at('times').value, skip: at('skip').value});
  wanted = query;
  try {
    if (!at('aim').checkValidity()) throw new Error('Times and skip are whole numbers from 0 to 9999');
    const presets = await call('presets?' + query);
    if (query !== wanted) return; // a later request was sent in the meantime
    at('presets').replaceChildren(...presets.map((preset) => make('li', {},
      make('strong', {textContent: preset.label}), goCode(preset),
      make('div', {className: 'bar'},
        make('button', {type: 'button', textContent: 'Arm', ariaLabel: 'Arm: ' + preset.label,
          onclick: () => act('POST', 'faults', preset.fault, 'Armed: ' + preset.label)}),
        goCopier(preset)))));
    if (at('said').classList.contains('bad')) say('');
  } catch (error) {
    if (query !== wanted) return;
    at('presets').replaceChildren(); // the old presets do not fit the new values
    say(error.message, true);
  }
}

// code returns an element with code. Long lines scroll, so the element can get the focus and needs a name.
function code(textContent, ariaLabel, className = '') {
  return make('code', {textContent, ariaLabel, className, role: 'group'});
}

function goCode({go, label, kind}) {
  return code(go, 'Go: ' + (label ?? kind));
}

function goCopier({go, label, kind}) {
  return copier(go, 'Copy Go', 'Copy the line of Go: ' + (label ?? kind), 'Copied the line of Go');
}

async function act(method, path, body, done) {
  try {
    await call(path, {method, body: body && JSON.stringify(body)});
    say(done);
  } catch (error) {
    say(error.message, true);
  }
  await refresh();
}

at('clear').onclick = () => act('DELETE', 'faults', null, 'Disarmed all');
at('empty').onclick = () => act('DELETE', 'requests', null, 'Cleared the requests and deliveries').then(() => pause(false));
at('reset').onclick = () => act('POST', 'reset', null, 'Reset').then(() => pause(false));
at('bodies').onchange = ({target}) => act('PUT', 'bodies?shown=' + target.checked, null,
  target.checked ? 'Bodies of requests to come are shown' : 'Bodies are hidden, and the list is cleared').then(() => pause(false));
at('only').onchange = at('failed').onchange = () => pause(false);
at('search').oninput = () => {
  clearTimeout(typing);
  typing = setTimeout(pause, 300, false);
};
at('target').onchange = at('times').oninput = at('skip').oninput = showPresets; // with onchange, a click on a preset would replace its button
at('filter').onsubmit = at('aim').onsubmit = (event) => event.preventDefault();
at('pause').onclick = () => pause(!paused());

// pause stops or continues updates of the list of requests. The faults and records are always updated.
function pause(on) {
  at('pause').ariaPressed = on;
  if (on) showConnection();
  else connect();
}

refresh();
showPresets();
connect();
