// Says how many rows came since a list was made, and where to see them. Rows are never put under a reader.
(function () {
    "use strict";
    const EVERY = 5000;

    function paused() {
        try { return localStorage.getItem("ma.paused") === "1"; } catch { return false; }
    }

    function watch(link) {
        let known = "";
        async function look() {
            if (document.hidden || paused()) return;
            const answer = await fetch(link.dataset.news, {
                credentials: "same-origin", cache: "no-store", redirect: "error", headers: known ? {"If-None-Match": known} : {},
            });
            if (answer.status !== 200) return; // 304: nothing new since
            link.textContent = await answer.text();
            link.hidden = link.textContent === "";
            known = answer.headers.get("ETag") || "";
        }
        setInterval(function () { look().catch(function () { /* away: what is known stays */ }); }, EVERY);
    }

    document.addEventListener("DOMContentLoaded", function () {
        document.querySelectorAll("[data-news]").forEach(watch);
    });
})();
