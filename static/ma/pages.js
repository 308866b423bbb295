// Small comforts; every page works without them. Times in the reader's zone, and refreshing that can be paused.
(function () {
    "use strict";
    const root = document.documentElement;
    root.classList.remove("no-script");
    const PAUSED = "ma.paused";
    const language = root.lang.startsWith("en") ? "en-GB" : root.lang; // days before months, 24 hours

    function paused() {
        try { return localStorage.getItem(PAUSED) === "1"; } catch { return false; }
    }

    // As ma_site.formats: `21 Nov 2026, 14:35:16 UTC`. A time that people read to each other has its zone.
    function written(instant) {
        const month = instant.toLocaleString(language, {month: "short"}).slice(0, 3);
        const clock = instant.toLocaleString(language, {timeStyle: "long"});
        return instant.getDate() + " " + month + " " + instant.getFullYear() + ", " + clock;
    }

    function localTimes(scope) {
        scope.querySelectorAll("time[datetime]").forEach(function (element) {
            const instant = new Date(element.dateTime);
            if (!isNaN(instant)) {
                element.title = written(instant);
                if (element.dataset.show === "local") element.textContent = element.title;
            }
        });
    }

    // Of charts: titles and names hold the time as the server wrote it; what is below the axis says the part of it that
    // its form names.
    function localCharts(scope) {
        scope.querySelectorAll("svg [data-instant]").forEach(function (element) {
            const instant = new Date(element.dataset.instant), before = element.dataset.written;
            if (isNaN(instant)) return;
            const local = written(instant), title = element.querySelector("title");
            if (element.tagName === "text") { element.textContent = shortly(instant, element.dataset.form, local); return; }
            if (title) title.textContent = title.textContent.replace(before, local);
            const named = element.closest("[aria-label]:not(svg)");
            if (named) named.setAttribute("aria-label", named.getAttribute("aria-label").replace(before, local));
            element.dataset.written = local;
        });
    }

    function shortly(instant, form, local) {
        const [day, month, year] = local.replace(",", "").split(" ");
        const clock = instant.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"});
        if (form === "year") return year;
        if (form === "month") return month + " " + year;
        if (form === "day" || clock === "00:00") return day + " " + month;
        return form === "moment" ? day + " " + month + " " + clock : clock;
    }

    // The values of one place of a chart, as its table has them: by the pointer, or by the arrow keys.
    function readChart(figure, index) {
        const rows = figure.querySelectorAll("tbody tr"), plot = figure.querySelector(".plot");
        let line = plot.querySelector(".cross"), said = figure.querySelector(".read");
        if (!rows.length) return;
        index = Math.max(0, Math.min(rows.length - 1, index));
        if (!line) {
            line = document.createElementNS("http://www.w3.org/2000/svg", "line");
            line.setAttribute("class", "cross");
            plot.prepend(line);
        }
        const at = (100 * (index + 0.5) / rows.length).toFixed(2) + "%";
        Object.entries({x1: at, x2: at, y1: 0, y2: plot.height.baseVal.value - 20}).forEach(function ([name, value]) { line.setAttribute(name, value); });
        if (!said) {
            said = document.createElement("p");
            said.className = "read";
            said.setAttribute("role", "status");
            plot.after(said);
        }
        const heads = [...figure.querySelectorAll("thead th")].map(function (each) { return each.textContent; });
        const cells = [...rows[index].children].map(function (each) { return each.textContent; });
        said.textContent = cells.map(function (each, column) { return column ? heads[column] + " " + each : each; }).join(" · ");
        figure.dataset.at = index;
    }

    document.addEventListener("pointermove", function (event) {
        const plot = event.target.closest && event.target.closest("[data-chart] .plot");
        if (!plot) return;
        const figure = plot.closest("[data-chart]"), style = getComputedStyle(plot), box = plot.getBoundingClientRect();
        const left = box.left + parseFloat(style.paddingLeft), width = box.width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        readChart(figure, Math.floor(figure.querySelectorAll("tbody tr").length * (event.clientX - left) / width));
    });
    document.addEventListener("keydown", function (event) {
        const plot = event.target.matches && event.target.matches("[data-chart] .plot") ? event.target : null;
        const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e6, End: 1e6};
        if (!plot || !(event.key in steps)) return;
        event.preventDefault();
        const figure = plot.closest("[data-chart]"), rows = figure.querySelectorAll("tbody tr").length;
        readChart(figure, (figure.dataset.at === undefined ? rows : Number(figure.dataset.at)) + steps[event.key]);
    });

    function showPause() {
        document.querySelectorAll("[data-pause]").forEach(function (button) {
            button.setAttribute("aria-pressed", paused() ? "true" : "false");
            button.querySelector("[data-word]").textContent = paused() ? button.dataset.resume : button.dataset.pause;
            button.querySelector("use").setAttribute("href", paused() ? "#i-play" : "#i-pause");
        });
    }

    function reading(element) {
        const active = document.activeElement;
        return element.contains(active) && !active.hasAttribute("data-pause");
    }

    function choose(box) {
        const form = box.form;
        form.querySelectorAll("input[type=checkbox][name=letter], input[type=checkbox][name=number]").forEach(function (each) { each.checked = box.checked; });
    }

    document.addEventListener("click", function (event) {
        if (event.target.closest("[data-pause]")) {
            try { localStorage.setItem(PAUSED, paused() ? "0" : "1"); } catch { /* private mode: no pause to keep */ }
            showPause();
        }
    });
    // Said until this browser dismisses it; the focus goes to what follows, for the button is gone.
    function showDismissible() {
        document.querySelectorAll("[data-dismissible]").forEach(function (each) {
            let dismissed = false;
            try { dismissed = localStorage.getItem("ma.dismissed." + each.id) === "1"; } catch { /* shown each time */ }
            each.hidden = dismissed;
        });
    }
    document.addEventListener("click", function (event) {
        if (!event.target.closest("[data-dismiss]")) return;
        const said = event.target.closest("[data-dismissible]");
        try { localStorage.setItem("ma.dismissed." + said.id, "1"); } catch { /* until the next page */ }
        said.hidden = true;
        document.getElementById("content-start").focus();
    });
    document.addEventListener("DOMContentLoaded", showDismissible);
    // A menu closes by Escape, which gives the focus back to its label, and by a click anywhere else.
    document.addEventListener("click", function (event) {
        document.querySelectorAll("[data-menu][open]").forEach(function (menu) { if (!menu.contains(event.target)) menu.open = false; });
    });
    document.addEventListener("keydown", function (event) {
        if (event.key !== "Escape") return;
        document.querySelectorAll("[data-menu][open]").forEach(function (menu) {
            const inside = menu.contains(document.activeElement);
            menu.open = false;
            if (inside) menu.querySelector("summary").focus();
        });
    });
    // A field that only means something with a choice beside it, or without one; without scripts its label says so.
    function showOnlyWith(form) {
        form.querySelectorAll("[data-only-with]").forEach(function (field) {
            const of = form.elements[field.dataset.onlyWith];
            if (of) field.hidden = of.type === "checkbox" ? !of.checked : of.value !== field.dataset.value;
        });
        form.querySelectorAll("[data-only-without]").forEach(function (field) {
            const of = form.elements[field.dataset.onlyWithout];
            if (of) field.hidden = of.checked;
        });
    }

    document.addEventListener("change", function (event) {
        if (event.target.matches("[data-choose-all]")) choose(event.target);
        if (event.target.form) showOnlyWith(event.target.form);
    });
    // A refresh never runs in a hidden tab or while paused, and never takes the focus away: what has it is left alone,
    // but for the button itself, whose id lets htmx give it the focus back.
    document.addEventListener("htmx:beforeRequest", function (event) {
        const polled = event.detail.elt.hasAttribute("data-poll");
        if (polled && (document.hidden || paused() || reading(event.detail.elt))) event.preventDefault();
    });
    // What scrolls can be scrolled by keys, also where nothing in it takes the focus.
    function reachable() {
        document.querySelectorAll(".scroll, pre.bytes").forEach(function (box) {
            if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; else box.removeAttribute("tabindex");
        });
    }

    // What somebody unfolded stays so when its part of the page is refreshed.
    let unfolded = [];
    document.addEventListener("htmx:beforeSwap", function () {
        unfolded = [...document.querySelectorAll("details[data-kept][open]")].map(function (each) { return each.dataset.kept; });
    });
    document.addEventListener("htmx:afterSwap", function () {
        document.querySelectorAll("details[data-kept]").forEach(function (each) { if (unfolded.includes(each.dataset.kept)) each.open = true; });
    });
    // On a phone a row is a card (console.css): each cell says the name of its column, and one without content goes.
    // Where the page itself says the names (class stacks), some cells need none.
    function makeCards() {
        document.querySelectorAll(":is(table.grid, #result_list, .tabular table):not([data-cards])").forEach(function (table) {
            const named = table.classList.contains("stacks");
            const heads = Array.from(table.querySelectorAll("thead tr:last-child > *"), function (head) {
                const words = head.querySelector(".text") || head; // the admin adds tools for sorting
                return words.textContent.replace(/\s+/g, " ").trim();
            });
            table.querySelectorAll("tbody > tr").forEach(function (row) {
                let column = 0;
                Array.from(row.cells).forEach(function (cell) {
                    const text = cell.textContent.trim(), name = cell.colSpan === 1 ? heads[column] : "";
                    const bare = !cell.querySelector("input, select, textarea, button, progress, img, svg:not(:empty)");
                    column += cell.colSpan;
                    if (bare && (!text || text === "—")) cell.classList.add("none");
                    else if (name && !named && cell.matches("td:not(.tick, .action-checkbox)")) cell.dataset.label = name;
                });
            });
            table.classList.add("stacks");
            table.dataset.cards = "";
        });
    }

    function prepare() {
        makeCards();
        localTimes(document);
        localCharts(document);
        document.querySelectorAll("[data-chart] .plot").forEach(function (plot) { plot.tabIndex = 0; });
        showPause();
        reachable();
        document.querySelectorAll("form:has([data-only-with], [data-only-without])").forEach(showOnlyWith);
    }

    // The admin names pictures that have no role in which a name is read.
    window.addEventListener("load", function () {
        document.querySelectorAll(".help-tooltip[aria-label]").forEach(function (picture) { picture.setAttribute("role", "img"); });
    });
    document.addEventListener("htmx:afterSwap", prepare);
    document.addEventListener("DOMContentLoaded", prepare);
    window.addEventListener("resize", reachable);
    localTimes(document);
})();
