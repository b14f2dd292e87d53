/**
 * The style of the admin page: plain, dense, in the reader's own light or dark mode; below 720 pixels each
 * row of a table becomes a card with labelled cells.
 */
export const adminStyle = `
:root { color-scheme: light dark;
  --ink: #1b1f24; --soft: #59636e; --line: #d5dae0; --page: #fff; --head: #f4f6f8;
  --good: #e0f2e4; --good-ink: #14532d; --bad: #fde4e1; --bad-ink: #8c1d18;
  --open: #e1ecfb; --open-ink: #123f7d; --plain: #eceff2; --plain-ink: #3b434c; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6e9ed; --soft: #9aa4af; --line: #343b43; --page: #14171a; --head: #1c2024;
  --good: #16351f; --good-ink: #a5e0b4; --bad: #43201d; --bad-ink: #ffb4ab;
  --open: #172c47; --open-ink: #a9cbf7; --plain: #262b31; --plain-ink: #c3cad2; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--page); font: 14px/1.45 system-ui, sans-serif; }
header, main { max-width: 1500px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 20px; }
h1 { font-size: 22px; margin: 0; }
h2 { font-size: 16px; margin: 28px 0 8px; }
small, header p { color: var(--soft); font-weight: normal; }
header p { margin: 2px 0 14px; }
form { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
input { font: inherit; width: 15em; max-width: 100%; padding: 3px 6px; }
input[name=limit] { width: 5em; }
button { font: inherit; padding: 3px 14px; }
a { color: var(--open-ink); }
.tiles { list-style: none; display: flex; flex-wrap: wrap; gap: 8px; padding: 0; margin: 18px 0 0; }
.tiles li { background: var(--head); border: 1px solid var(--line); border-radius: 6px; padding: 6px 12px; }
.tiles strong { font-size: 18px; margin-right: 4px; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-weight: 600; color: var(--soft); background: var(--head); white-space: nowrap; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 6.5em; }
time { white-space: nowrap; }
code { font: 12px/1.5 ui-monospace, monospace; }
.tag { display: inline-block; padding: 0 7px; border-radius: 9px; font-size: 12.5px; }
.tag { white-space: nowrap; }
.good { background: var(--good); color: var(--good-ink); }
.bad { background: var(--bad); color: var(--bad-ink); }
.open { background: var(--open); color: var(--open-ink); }
.plain { background: var(--plain); color: var(--plain-ink); }
.calm { color: var(--soft); margin: 0; }
main { padding-bottom: 40px; }
@media (max-width: 720px) {
  header, main { padding-left: 12px; padding-right: 12px; }
  form label { flex: 1 1 100%; display: flex; gap: 8px; align-items: center; }
  form label { justify-content: space-between; }
  form input { flex: 0 1 65%; }
  form input[name=limit] { flex: 0 0 5em; }
  thead { position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }
  tr { display: block; border: 1px solid var(--line); border-radius: 6px; }
  tr { margin-bottom: 10px; padding: 4px 0; }
  td { display: grid; grid-template-columns: 7.5em 1fr; gap: 10px; border: 0; padding: 3px 10px; }
  td::before { content: attr(data-title); color: var(--soft); }
}
`
