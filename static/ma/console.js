// Comforts of the dead-letter consoles; every page works without them. Copying, keys, and a selection that survives
// paging. Keys can be switched off in their help; they never act while something is written.
(function () {
    "use strict";
    const KEYS_OFF = "ma.keys.off";
    const SELECTED = "ma.selected:";
    const LARGEST = 5000; // what one form of selected letters takes
    const WRITING = "input:not([type=checkbox]):not([type=radio]):not([type=button]):not([type=submit]), textarea, select";

    function kept(storage, key) {
        try { return storage.getItem(key); } catch { return null; }
    }

    function keep(storage, key, value) {
        try {
            if (value === null) storage.removeItem(key); else storage.setItem(key, value);
        } catch { /* private mode: nothing to keep it in */ }
    }

    // -- copying ---------------------------------------------------------------------------------------------------

    function copyByHand(text) {
        const area = document.createElement("textarea");
        area.value = text;
        area.className = "visually-hidden";
        document.body.append(area);
        area.select();
        const done = document.execCommand("copy"); // what there is where the site has no TLS
        area.remove();
        return done;
    }

    async function copied(url) {
        const answer = await fetch(url, {credentials: "same-origin"});
        if (!answer.ok) return false;
        const text = await answer.text();
        if (!navigator.clipboard) return copyByHand(text);
        await navigator.clipboard.writeText(text);
        return true;
    }

    async function copy(button) {
        const word = button.querySelector("[data-word]");
        const before = button.dataset.before || word.textContent;
        button.dataset.before = before;
        let done = false;
        try { done = await copied(button.dataset.copy); } catch { /* told below */ }
        word.textContent = done ? button.dataset.said : button.dataset.failed;
        setTimeout(function () { word.textContent = before; }, 2000);
    }

    // -- selection -------------------------------------------------------------------------------------------------

    // Numbers that were ticked on other pages of this list; those of this page are its own boxes.
    function stored(form) {
        const text = kept(sessionStorage, SELECTED + form.dataset.selection) || "";
        return new Set(text.split(",").filter(function (each) { return /^\d+$/.test(each); }));
    }

    function boxes(form) {
        return Array.from(form.querySelectorAll("input[type=checkbox][name=letter]"));
    }

    function remember(form) {
        const all = stored(form);
        boxes(form).forEach(function (box) {
            if (box.checked) all.add(box.value); else all.delete(box.value);
        });
        keep(sessionStorage, SELECTED + form.dataset.selection, all.size ? Array.from(all).join(",") : null);
        return all;
    }

    function tell(form, all) {
        const here = boxes(form);
        const elsewhere = Array.from(all).filter(function (each) {
            return !here.some(function (box) { return box.value === each; });
        });
        const counter = form.querySelector("[data-selected]");
        const language = document.documentElement.lang;
        if (counter) counter.textContent = all.size.toLocaleString(language);
        const other = form.querySelector("[data-elsewhere]");
        if (other) {
            other.hidden = elsewhere.length === 0;
            other.querySelector("b").textContent = elsewhere.length.toLocaleString(language);
        }
        const many = form.querySelector("[data-too-many]");
        if (many) many.hidden = all.size <= LARGEST;
        form.querySelectorAll("[data-of-selected]").forEach(function (button) {
            button.disabled = all.size === 0 || all.size > LARGEST;
        });
        const every = form.querySelector("[data-choose-all]");
        if (every) {
            const ticked = here.filter(function (box) { return box.checked; }).length;
            every.checked = here.length > 0 && ticked === here.length;
            every.indeterminate = ticked > 0 && ticked < here.length;
        }
    }

    function restore(form) {
        const all = stored(form);
        boxes(form).forEach(function (box) { if (all.has(box.value)) box.checked = true; });
        tell(form, remember(form));
    }

    function forget(form) {
        boxes(form).forEach(function (box) { box.checked = false; });
        keep(sessionStorage, SELECTED + form.dataset.selection, null);
        tell(form, new Set());
    }

    // The ids of other pages go with the form, in one field.
    function send(form) {
        const all = remember(form);
        let field = form.querySelector("input[name=letters]");
        if (!field) {
            field = document.createElement("input");
            field.type = "hidden";
            field.name = "letters";
            form.append(field);
        }
        field.value = Array.from(all).join(",");
    }

    // -- keys ------------------------------------------------------------------------------------------------------

    function rows() {
        return Array.from(document.querySelectorAll("[data-rows] tbody tr"));
    }

    function here(all) {
        return all.findIndex(function (row) { return row.contains(document.activeElement); });
    }

    function go(step) {
        const all = rows();
        const next = all[Math.max(0, Math.min(all.length - 1, here(all) + step))];
        const target = next && (next.querySelector("a[data-row]") || next.querySelector("a[href]") || next.querySelector("input"));
        if (target) target.focus();
        return Boolean(target);
    }

    function tick() {
        const all = rows();
        const row = all[here(all)];
        const box = row && row.querySelector("input[type=checkbox]");
        if (box) box.click();
        return Boolean(box);
    }

    function search() {
        const field = document.querySelector("#header [role=search] input");
        if (field) field.focus();
        return Boolean(field);
    }

    function filter() {
        const field = document.querySelector("#content-start [role=search] input:not([type=hidden]), #content-start [role=search] select");
        const folded = field && field.closest("details");
        if (folded) folded.open = true;
        if (field) field.focus();
        return Boolean(field);
    }

    function places() { // entries of the navigation and the key of each
        return Array.from(document.querySelectorAll("[data-go]"));
    }

    function listPlaces(list) {
        list.replaceChildren(...places().flatMap(function (link) {
            const key = document.createElement("dt");
            const name = document.createElement("dd");
            key.append(document.createElement("kbd"));
            key.firstChild.textContent = link.dataset.go;
            name.textContent = link.firstChild.textContent;
            return [key, name];
        }));
    }

    function help() {
        const dialog = document.getElementById("keys");
        if (!dialog) return false;
        listPlaces(dialog.querySelector("[data-places]"));
        if (dialog.open) dialog.close(); else dialog.showModal();
        return true;
    }

    function choosePanel(tab) {
        tab.closest("[role=tablist]").querySelectorAll("[role=tab]").forEach(function (each) {
            const chosen = each === tab;
            const panel = document.getElementById(each.getAttribute("aria-controls"));
            each.setAttribute("aria-selected", chosen ? "true" : "false");
            each.tabIndex = chosen ? 0 : -1;
            panel.hidden = !chosen;
            if (chosen) htmx.trigger(panel, "shown");
        });
        tab.focus();
    }

    function otherPanel(tab) {
        const tabs = Array.from(tab.closest("[role=tablist]").querySelectorAll("[role=tab]"));
        choosePanel(tabs[(tabs.indexOf(tab) + 1) % tabs.length]);
    }

    function follow(key) {
        const target = document.querySelector("[data-key='" + key + "']");
        if (target) target.click();
        return Boolean(target);
    }

    let leaving = 0; // when g was pressed

    function visit(key) {
        const target = places().find(function (link) { return link.dataset.go === key; });
        if (target) target.click();
        return Boolean(target);
    }

    function press(key) {
        const begun = leaving;
        leaving = 0;
        if (begun && Date.now() - begun < 1500) return visit(key);
        if (key === "g") return Boolean(leaving = Date.now());
        if (key === "?") return help();
        if (key === "/") return search();
        if (key === "f") return filter();
        if (key === "x") return tick();
        if ((key === "j" || key === "k") && rows().length) return go(key === "j" ? 1 : -1);
        return /^[a-z]$/.test(key) && follow(key);
    }

    function latin(event) { // the letter of the key, also where the layout has Cyrillic ones
        const letter = /^Key[A-Z]$/.test(event.code) && event.key > "~" && event.key.length === 1;
        return letter ? event.code[3].toLowerCase() : event.key;
    }

    document.addEventListener("keydown", function (event) {
        if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
        if (event.target.closest && event.target.closest(WRITING)) return;
        if (event.key !== "?" && (kept(localStorage, KEYS_OFF) === "1" || document.querySelector("dialog[open]"))) return;
        if (press(latin(event))) event.preventDefault();
    });

    document.addEventListener("keydown", function (event) {
        const moves = event.key === "ArrowRight" || event.key === "ArrowLeft"; // of two panels the other one
        if (moves && event.target.matches("[role=tab]")) otherPanel(event.target);
    });

    document.addEventListener("click", function (event) {
        const tab = event.target.closest("[role=tab]");
        if (tab) choosePanel(tab);
        const button = event.target.closest("[data-copy], [data-forget], [data-keys], [data-close]");
        if (!button) return;
        if (button.hasAttribute("data-copy")) copy(button);
        if (button.hasAttribute("data-forget")) forget(button.form);
        if (button.hasAttribute("data-keys")) help();
        if (button.hasAttribute("data-close")) button.closest("dialog").close();
    });

    document.addEventListener("change", function (event) {
        if (event.target.matches("[data-keys-on]")) keep(localStorage, KEYS_OFF, event.target.checked ? null : "1");
        const form = event.target.closest("form[data-selection]");
        if (form) tell(form, remember(form));
    });

    document.addEventListener("submit", function (event) {
        if (event.target.matches("form[data-selection]")) send(event.target);
    });

    document.addEventListener("DOMContentLoaded", function () {
        document.querySelectorAll("[data-keys-on]").forEach(function (box) {
            box.checked = kept(localStorage, KEYS_OFF) !== "1";
        });
        document.querySelectorAll("form[data-selection]").forEach(restore);
    });
    window.addEventListener("pageshow", function (event) { // back and forward bring a page as it was
        if (event.persisted) document.querySelectorAll("form[data-selection]").forEach(restore);
    });
})();
