// Swagger UI has dark colours of its own, which it shows below html.dark-mode: as the theme of the site says.
(function () {
    "use strict";
    const root = document.documentElement;
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    function follow() {
        const theme = root.dataset.theme;
        root.classList.toggle("dark-mode", theme === "dark" || (theme !== "light" && dark.matches));
    }
    new MutationObserver(follow).observe(root, {attributeFilter: ["data-theme"]});
    dark.addEventListener("change", follow);
    follow();
})();
