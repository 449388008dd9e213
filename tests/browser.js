// What tests/browser.py measures of pages; AXE, SCREEN and ASKED are set before.
async function measured(name, width, withAxe) {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:${SCREEN}px;border:0`;
  frame.src = name;
  const loaded = new Promise((done) => frame.addEventListener("load", done));
  document.body.replaceChildren(frame);
  await loaded;
  const page = frame.contentDocument, root = page.documentElement, seen = frame.contentWindow;
  const found = { name, width, height: root.scrollHeight, axe: [] };
  if (withAxe) {
    const script = page.createElement("script");
    script.textContent = AXE;
    page.head.append(script);
    const result = await seen.axe.run(page);
    const bad = result.violations.filter((one) => ["serious", "critical"].includes(one.impact));
    found.axe = bad.map(({ id, nodes }) => `${id}: ${nodes.length}, ${nodes[0].html.slice(0, 200)}`);
  }
  page.querySelectorAll("details").forEach((one) => { one.open = true; });
  found.overflow = root.scrollWidth - root.clientWidth;
  found.small = 99;
  const texts = "p, td, th, small, li, a, dd, svg text, button, figcaption, summary";
  for (const text of page.querySelectorAll(texts)) {
    let size = parseFloat(seen.getComputedStyle(text).fontSize);
    const drawn = text.closest("svg");
    if (drawn) size *= drawn.getBoundingClientRect().width / drawn.viewBox.baseVal.width;
    const told = text.textContent.trim().slice(0, 60);
    if (told && size < found.small) Object.assign(found, { small: size, smallest: told });
  }
  return found;
}
async function all() {
  const found = [];
  for (const [name, width, withAxe] of ASKED) {
    try { found.push(await measured(name, width, withAxe)); }
    catch (error) { found.push({ name, width, error: String(error) }); }
  }
  document.body.replaceChildren();
  document.body.textContent = "FOUND" + JSON.stringify(found) + "DNUOF";
}
all();
