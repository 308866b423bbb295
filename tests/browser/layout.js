// What is wrong with how a page lies on the screen, as sentences: too wide, cut, covered, empty, or not in line.
const [wide] = arguments;
const found = new Set();
const edge = document.documentElement.clientWidth;
const MOVED = "pre.bytes"; // moved by hand, on purpose
const IGNORED = ".visually-hidden, .base-svgs, .selector-add, .selector-remove, .skip-to-content-link, option, datalist, script, style, #swagger-ui";
const words = text => text.replace(/\s+/g, " ").trim().slice(0, 50);
const seen = element => element.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !element.closest(IGNORED);
const say = (what, text) => found.add(`${what}: ${words(text)}`);

if (document.documentElement.scrollWidth > edge) say("too wide", `by ${document.documentElement.scrollWidth - edge} px`);

// The boxes of all words, cut where what they lie in is cut.
const boxes = [];
const range = document.createRange();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || !seen(parent)) continue;
    const clip = {left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity};
    for (let up = parent; up && up !== document.body; up = up.parentElement) {
        const style = getComputedStyle(up);
        if (style.overflowX === "visible" && style.overflowY === "visible" || style.display === "inline") continue;
        const box = up.getBoundingClientRect();
        for (const side of ["left", "top"]) clip[side] = Math.max(clip[side], box[side]);
        for (const side of ["right", "bottom"]) clip[side] = Math.min(clip[side], box[side]);
    }
    range.selectNodeContents(node);
    for (const whole of range.getClientRects()) {
        const box = {
            left: Math.max(whole.left, clip.left), right: Math.min(whole.right, clip.right),
            top: Math.max(whole.top + 2, clip.top), bottom: Math.min(whole.bottom - 2, clip.bottom),
            of: parent, node, text: node.textContent,
        };
        if (box.right - box.left > 1 && box.bottom - box.top > 1) boxes.push(box);
    }
}
for (const element of document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a.btn, svg.icon")) {
    if (!seen(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.width > 2) {
        boxes.push({
            left: box.left + 1, right: box.right - 1, top: box.top + 2, bottom: box.bottom - 2,
            of: element, node: element, text: `${element.tagName} ${element.name || element.id || ""}`, tool: true,
        });
    }
}
boxes.sort((one, other) => one.top - other.top);
boxes.forEach(function (one, index) {
    for (const other of boxes.slice(index + 1)) {
        if (other.top >= one.bottom) break;
        if (one.node === other.node || one.tool && one.of.contains(other.of) || other.tool && other.of.contains(one.of)) continue;
        const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        if (width > 2 && height > 2) say("covered", `${words(one.text)} | ${other.text}`);
    }
    if (one.of.closest("pre, .scroll, .results")) return;
    const panel = one.of.closest(".panel, .module, .note");
    const right = Math.min(edge, panel ? panel.getBoundingClientRect().right : edge);
    if (one.right > right + 1 || one.left < -1) say("beyond the edge", one.text);
});

for (const element of document.querySelectorAll("#container *")) {
    if (!seen(element) || !element.innerText || !element.innerText.trim()) continue;
    const style = getComputedStyle(element), hides = kind => kind === "hidden" || kind === "clip";
    if (hides(style.overflowX) && element.scrollWidth > element.clientWidth + 1 && style.textOverflow !== "ellipsis") say("cut", element.innerText);
    if (hides(style.overflowY) && element.scrollHeight > element.clientHeight + 2) say("cut", element.innerText);
}
for (const element of document.querySelectorAll(".scroll, #changelist .results, .console-nav, pre, .frames")) {
    if (seen(element) && !element.matches(MOVED) && element.scrollWidth > element.clientWidth + 1) say("moved sideways", element.innerText);
}
for (const element of document.querySelectorAll(".panel, .module, .note, .empty, fieldset")) {
    if (seen(element) && !element.innerText.trim()) say("empty", element.className);
}

// The first words of all cells stand on one line.
for (const row of document.querySelectorAll(wide ? "table.grid tr, #result_list tr" : ".never")) {
    if (!seen(row)) continue;
    const lines = Array.from(row.cells, function (cell) {
        const own = boxes.filter(box => !box.tool && cell.contains(box.of));
        return own.length ? Math.min(...own.map(box => box.bottom)) : null;
    }).filter(line => line !== null);
    if (Math.max(...lines) - Math.min(...lines) > 3) say("not in line", row.innerText);
}
return [...found];
