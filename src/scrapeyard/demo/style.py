"""The shop's one stylesheet."""

CSS = """\
:root { --ink: #1d2430; --soft: #5c6675; --line: #e4e7ec; --paper: #fff; --wash: #f6f7f9; --accent: #1f6f5c; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--wash); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
a { color: inherit; text-decoration: none; }
a:hover, a:focus-visible { color: var(--accent); }
:focus-visible { outline: 3px solid #8fd0bf; outline-offset: 2px; border-radius: 4px; }
.wrap { max-width: 1080px; margin: 0 auto; padding: 0 20px; }
.top { background: var(--paper); border-bottom: 1px solid var(--line); }
.top .wrap { display: flex; flex-wrap: wrap; gap: 12px 24px; align-items: center; padding-block: 14px; }
.logo { font-weight: 700; font-size: 20px; letter-spacing: -.02em; }
.logo span { color: var(--accent); }
.top nav { display: flex; flex-wrap: wrap; gap: 4px 18px; flex: 1; color: var(--soft); }
input { font: inherit; padding: 8px 12px; border: 1px solid #7d8794; border-radius: 8px; background: var(--paper); }
button, .button { font: inherit; font-weight: 600; padding: 9px 18px; border: 0; border-radius: 8px;
  background: var(--accent); color: #fff; cursor: pointer; }
main { padding-block: 28px 56px; }
h1 { font-size: 32px; line-height: 1.2; letter-spacing: -.02em; margin: 8px 0; }
.blurb { color: var(--soft); margin: 0 0 24px; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 20px; list-style: none;
  margin: 0; padding: 0; }
.card { display: block; height: 100%; background: var(--paper); border: 1px solid var(--line); border-radius: 14px;
  overflow: hidden; transition: box-shadow .15s; }
.card:hover { box-shadow: 0 8px 24px rgb(29 36 48 / 12%); }
.card img { display: block; width: 100%; aspect-ratio: 4 / 3; object-fit: cover; }
.card div { padding: 14px 16px 16px; }
.card h2, .card h3 { margin: 0 0 4px; font-size: 17px; }
.card p { margin: 0; color: var(--soft); font-size: 14px; }
.price { font-weight: 700; color: var(--ink); }
.row { display: flex; justify-content: space-between; gap: 8px; }
.out { color: #a3312a; }
.crumbs { font-size: 14px; color: var(--soft); }
.crumbs ol { display: flex; flex-wrap: wrap; gap: 8px; list-style: none; margin: 0; padding: 0; }
.crumbs li + li::before { content: "/"; margin-right: 8px; color: #9aa3af; }
.product { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 36px; margin-top: 20px; }
.product img { width: 100%; border-radius: 18px; border: 1px solid var(--line); }
.product .price { font-size: 28px; margin: 12px 0; }
.stars { color: #8a5a00; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 6px 20px; margin: 20px 0; }
dt { color: var(--soft); }
dd { margin: 0; }
.pages { display: flex; gap: 8px; margin-top: 28px; justify-content: center; }
.pages a, .pages span { min-width: 40px; text-align: center; padding: 7px 12px; border: 1px solid var(--line);
  border-radius: 8px; background: var(--paper); }
.pages [aria-current] { background: var(--accent); border-color: var(--accent); color: #fff; }
.form { max-width: 360px; display: grid; gap: 14px; background: var(--paper); border: 1px solid var(--line);
  border-radius: 14px; padding: 24px; }
.form label { display: grid; gap: 4px; font-size: 14px; color: var(--soft); }
footer { border-top: 1px solid var(--line); color: var(--soft); font-size: 14px; padding-block: 20px; }
"""
