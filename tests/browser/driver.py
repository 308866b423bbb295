"""A browser for looking at pages: Debian's chromium through its chromedriver, by plain W3C WebDriver
calls."""

import base64
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

START_SECONDS = 20.0
SHOWN_WITHIN_SECONDS = 60.0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def wait_for(check: Callable[[], Any], seconds: float = SHOWN_WITHIN_SECONDS) -> None:
    """For what must be shown sooner or later; the bound only ends a test that would never end."""
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it was not shown in time"
        time.sleep(0.2)


class MissingBrowser(Exception):
    """There is no chromium or chromedriver here. Install: apt-get install chromium chromium-driver"""


class Browser:
    """One headless window, signed in by nobody; close it."""

    def __init__(
        self, *, width: int = 1400, height: int = 1000, dark: bool = False, scripts: bool = True
    ) -> None:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        chromedriver = shutil.which("chromedriver")
        if not chromium or not chromedriver:
            raise MissingBrowser(
                "install chromium and chromium-driver (apt-get install chromium chromium-driver)"
            )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._profile = tempfile.mkdtemp(prefix="ma-browser-")
        self._program = subprocess.Popen(
            [chromedriver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._http = requests.Session()
        self._http.trust_env = False
        self._url = f"http://127.0.0.1:{port}"
        self._wait_for_program()
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--no-first-run",
            f"--window-size={width},{height}", f"--user-data-dir={self._profile}", "--hide-scrollbars",
            *(["--force-dark-mode"] if dark else []),
        ]  # fmt: skip
        preferences = {} if scripts else {"profile.managed_default_content_settings.javascript": 2}
        options = {"binary": chromium, "args": arguments, "prefs": preferences}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{answer['sessionId']}"

    def _wait_for_program(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                if self._http.get(f"{self._url}/status", timeout=2).json()["value"]["ready"]:
                    return
            except requests.RequestException:
                time.sleep(0.1)
        raise MissingBrowser("chromedriver did not start")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._http.request(
            method, self._url + path, json=body if method == "POST" else None, timeout=60
        )
        value = answer.json()["value"]
        if answer.status_code != 200:
            raise RuntimeError(f"{value['error']}: {value['message'].splitlines()[0]}")
        return value

    def open(self, url: str) -> None:
        self._call("POST", f"{self._session}/url", {"url": url})

    def url(self) -> str:
        return str(self._call("GET", f"{self._session}/url"))

    def windows(self) -> list[str]:
        found: list[str] = self._call("GET", f"{self._session}/window/handles")
        return found

    def go_to(self, window: str) -> None:
        """All that is asked afterwards is asked of this window."""
        self._call("POST", f"{self._session}/window", {"handle": window})

    def cookie(self, name: str, value: str) -> None:
        """For the site of the page that is open."""
        self._call("POST", f"{self._session}/cookie", {"cookie": {"name": name, "value": value, "path": "/"}})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._call(
            "POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)}
        )

    def run_until_done(self, script: str, *arguments: Any) -> Any:
        """The last of the script's own arguments is a function, to be called with what it found."""
        return self._call(
            "POST", f"{self._session}/execute/async", {"script": script, "args": list(arguments)}
        )

    def find(self, selector: str) -> str:
        answer = self._call("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        return str(answer[ELEMENT])

    def click(self, selector: str) -> None:
        self._call("POST", f"{self._session}/element/{self.find(selector)}/click", {})

    def write(self, selector: str, text: str) -> None:
        """Replaces what is in a field; as a person does, so that scripts of the page notice."""
        self.run(
            "const field = document.querySelector(arguments[0]); field.focus(); field.select()", selector
        )
        self._command("Input.insertText", {"text": text})

    def resize(self, width: int, height: int) -> None:
        self._call("POST", f"{self._session}/window/rect", {"width": width, "height": height})

    def narrow(self, width: int, height: int) -> None:
        """The page as wide as that, without loading it again. A window is never narrower than 500 px, a phone
        is."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", size)
        wait_for(lambda: self.run("return window.innerWidth") == width)

    def zone(self, name: str) -> None:
        """The time zone of the reader; empty: that of the machine."""
        self._command("Emulation.setTimezoneOverride", {"timezoneId": name})

    def press(self, key: str, code: str = "") -> None:
        """A key as a person presses it: Tab, Escape, Enter, or a letter; `code`: the key on the keyboard."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        pressed: dict[str, Any] = {"key": key, "text": text, "unmodifiedText": text, "code": code}
        pressed["windowsVirtualKeyCode"] = codes.get(key, 0)
        self._command("Input.dispatchKeyEvent", {"type": "keyDown" if text else "rawKeyDown", **pressed})
        self._command("Input.dispatchKeyEvent", {"type": "keyUp", **pressed})

    def prefer(self, feature: str, value: str) -> None:
        """A media feature, such as prefers-reduced-motion; with an empty value nothing is preferred."""
        self._command("Emulation.setEmulatedMedia", {"features": [{"name": feature, "value": value}]})

    def forget(self) -> None:
        """Cookies, what the open site keeps, the console so far, and what `narrow` and `zone` set."""
        self._command("Network.clearBrowserCookies", {})
        self.zone("")
        self._command("Emulation.clearDeviceMetricsOverride", {})
        self.run("localStorage.clear(); sessionStorage.clear()")
        self.log()

    def _command(self, name: str, parameters: dict[str, Any]) -> None:
        """Of DevTools."""
        self._call("POST", f"{self._session}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def log(self) -> list[dict[str, Any]]:
        """What the console of the browser says since the last call; violations of the CSP among it."""
        entries: list[dict[str, Any]] = self._call("POST", f"{self._session}/se/log", {"type": "browser"})
        return entries

    def picture(self, path: Path, *, whole: bool = False) -> None:
        if whole:
            height = self.run("return document.documentElement.scrollHeight")
            width = self.run("return window.outerWidth")
            self.resize(width, min(int(height) + 140, 4000))
        path.write_bytes(base64.b64decode(self._call("GET", f"{self._session}/screenshot")))

    def close(self) -> None:
        with contextlib.suppress(RuntimeError, requests.RequestException):  # it is ended below anyway
            self._call("DELETE", self._session)
        self._program.terminate()
        self._program.wait(timeout=10)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
