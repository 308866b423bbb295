// Shows of the form of a setting or a group what its kind, timing and schedule need. Without it every field is there.
(function () {
    "use strict";
    const MESSAGE = ["destination", "mode", "concurrency", "handling_timeout_seconds", "transaction_timeout_seconds",
        "count_once", "try_one_first", "masked_properties", "after_last", "duplicate_key", "ordered",
        "goal_seconds", "goal_percent"];
    const LAZY = ["dups_ok_messages", "dups_ok_seconds"];
    const ANSWERED = ["acknowledgement_timeout_seconds", "acknowledgement_property", "committed_destination",
        "rolled_back_destination"];
    const DRAIN = ["drain_idle_seconds", "drain_wait_seconds", "drain_limit_messages", "drain_limit_minutes"];
    const PARTS = {
        "": [], every: ["number", "unit"], daily: ["time", "zone"], weekly: ["days", "time", "zone"],
        crontab: ["crontab", "zone"],
    };

    function value(form, name, otherwise) {
        const field = form.elements[name];
        return field ? field.value : otherwise;
    }

    // A field with a problem stays in sight.
    function show(form, name, wanted) {
        form.querySelectorAll(".form-row.field-" + name).forEach(function (row) {
            row.hidden = !wanted && !row.querySelector(".errorlist");
        });
    }

    function follow(form) {
        const standalone = value(form, "kind", form.dataset.kind) === "standalone";
        const delayed = value(form, "timing", "DELAYED") === "DELAYED";
        const choice = value(form, "schedule_choice", "");
        MESSAGE.forEach(function (name) { show(form, name, !standalone); });
        const mode = value(form, "mode", "");
        LAZY.forEach(function (name) { show(form, name, !standalone && mode === "DUPS_OK"); });
        ANSWERED.forEach(function (name) { show(form, name, !standalone && mode === "CLIENT"); });
        show(form, "duplicate_window_seconds", !standalone && value(form, "duplicate_key", "") !== "");
        const ordered = form.elements.ordered;
        show(form, "blocked_seconds", !standalone && Boolean(ordered && ordered.checked));
        show(form, "exception_destination", !standalone && value(form, "after_last", "") === "exception");
        DRAIN.forEach(function (name) { show(form, name, !standalone && delayed); });
        show(form, "restart_seconds", standalone && !delayed);
        show(form, "schedule_choice", delayed);
        ["number", "unit", "days", "time", "crontab", "zone"].forEach(function (part) {
            show(form, "schedule_" + part, delayed && (PARTS[choice] || []).includes(part));
        });
        show(form, "schedule_missed", delayed && choice !== "");
        form.querySelectorAll("fieldset.module").forEach(function (fieldset) {
            const rows = fieldset.querySelectorAll(".form-row");
            fieldset.hidden = rows.length > 0 && Array.from(rows).every(function (row) { return row.hidden; });
        });
    }

    document.addEventListener("DOMContentLoaded", function () {
        const form = document.querySelector("#launchsetting_form, #scheduledgroup_form");
        if (!form) return;
        const kind = form.querySelector("[data-kind]");
        form.dataset.kind = kind ? kind.dataset.kind : "message";
        form.addEventListener("change", function () { follow(form); });
        // What was made or changed in another window only jQuery is told of; this form and its preview listen to the browser.
        django.jQuery(form).on("change", ".related-widget-wrapper select", function (event) {
            const chosen = event.target === this || event.target.selected;
            if (!event.originalEvent && chosen) this.dispatchEvent(new Event("change", {bubbles: true}));
        });
        follow(form);
    });
})();
