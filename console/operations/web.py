"""Pages of operations: GET asks, POST does it. Nothing happens by looking."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views import View

from console.audit.refusals import audited
from console.operations.operation import Done, Operation, check_allowed, perform
from console.operations.refusals import NotAllowed, Refused
from console.ui.page import Button, add_page, link, page
from console.ui.page import View as Page
from contract.typed import storable


def add_operations(*operations: type[Operation[Any]], kind: "type[OperationPage] | None" = None) -> None:
    """A page of this kind for each, below the page of its object."""
    for operation in operations:
        on, verb = operation.on, operation.verb()
        address = operation.address or f"{on.route}{verb}/{operation.place}"
        add_page(address, (kind or OperationPage).view_of(operation), f"{on.name}_{verb}")


def operation_buttons(user: Any, obj: Any, *operations: type[Operation[Any]]) -> list[Button]:
    """Those that can be meant now; one that cannot be pressed says why."""
    now, buttons = timezone.now(), []
    for operation in operations:
        asked, on, verb = operation(), operation.on, operation.verb()
        if not asked.offered(obj):
            continue
        why = operation.permission.why_not(user, obj)
        if not why and (refused := asked.refusal_to(user, obj, now)):
            why = refused.sentence
        tone = "" if operation.quiet else operation.tone
        url, at_once = link(f"{on.name}_{verb}", on.key_of(obj)), operation.immediate
        text = operation.label if at_once else f"{operation.label}…"
        buttons.append(Button(verb, text, url, operation.icon, tone, why, at_once))
    return buttons


class OperationPage(View):
    """Rights first: who has none learns nothing of what else is wrong."""

    operation: type[Operation[Any]] = Operation

    @classmethod
    def view_of(
        cls, operation: type[Operation[Any]], guard: Callable[[Page], Page] | None = None, **options: Any
    ) -> Page:
        """`guard` lets people in before anything is looked for; `options`: further attributes of the page."""
        if not operation.immediate and operation.question is Operation.question:
            raise TypeError(f"{operation.__name__} has a page, and no question for it")
        methods = ["post", "options"] if operation.immediate else ["get", "head", "post", "options"]
        view: Page = cls.as_view(operation=operation, http_method_names=methods, **options)
        return audited(operation.code)(guard(view) if guard else view)

    def get(self, request: HttpRequest, **address: Any) -> HttpResponseBase:
        obj = self._object(address)
        if why := self.operation.permission.why_not(request.user, obj):
            raise NotAllowed(why)
        named = self._named(address)
        return self._ask(obj, named, self._form(obj, named))

    def post(self, request: HttpRequest, **address: Any) -> HttpResponseBase:
        obj = self._object(address)
        check_allowed(self.operation, obj, request.user)
        named = self._named(address)
        form = self._form(obj, named, request.POST)
        if not form.is_valid():
            return self._refill(obj, named, form)
        try:
            done = self._perform(obj, named, form)
        except Refused as refused:
            messages.error(request, refused.sentence)
            return self._back(obj)
        except type(obj).DoesNotExist:
            messages.error(request, _("This object has already been deleted."))
            return self._back(None)
        if done.message:
            messages.success(request, str(done.message))
        return self._back(None if done.is_gone or done.to_list else done.then or obj)

    def _object(self, address: Mapping[str, Any]) -> Any:
        on = self.operation.on
        rows = on.rows_for(self.request.user)
        if self.operation.makes:
            return rows.model()
        key = storable(self.request.POST.get(on.query, "")) if on.query else address[on.key]
        return get_object_or_404(rows, **{on.key: key})

    def _back(self, obj: Any) -> HttpResponseBase:
        """Leads to the object, or, where that is None, to the list that it was in."""
        on, to_list = self.operation.on, obj is None or self.operation.makes
        return HttpResponseRedirect(link(on.list_page) if to_list else on.url(obj))

    def _named(self, address: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs that the address names."""
        inputs, key = self.operation.inputs, self.operation.on.key
        return {name: inputs[name].from_address(value) for name, value in address.items() if name != key}

    def _form(self, obj: Any, named: Mapping[str, Any], given: Any = None) -> forms.Form:
        form, hidden = forms.Form(given), {*self.operation().hidden(obj), *named}
        inputs = self.operation.inputs.items()
        form.fields = {name: one.form_field() for name, one in inputs if name not in hidden}
        return form

    def _perform(self, obj: Any, named: Mapping[str, Any], form: forms.Form) -> Done:
        now, inputs = timezone.now(), self.operation.inputs
        given = {name: inputs[name].from_form(value, now) for name, value in form.cleaned_data.items()}
        return perform(self.operation, obj, self.request.user, now, **given, **named)

    def _refill(self, obj: Any, named: Mapping[str, Any], form: forms.Form) -> HttpResponseBase:
        if not self.operation.immediate:
            return self._ask(obj, named, form)
        messages.error(self.request, " ".join(str(text) for texts in form.errors.values() for text in texts))
        return self._back(obj)

    def _ask(self, obj: Any, named: Mapping[str, Any], form: forms.Form) -> HttpResponseBase:
        operation, on = self.operation(), self.operation.on
        question = operation.question(obj, self.request.user, **named)
        refused = question.refusal or operation.refusal_to(self.request.user, obj, timezone.now())
        form.initial = dict(question.initial)
        return page(
            self.request,
            operation.template,
            title=question.title,
            section=on.section or on.list_page,
            crumbs=on.crumbs(obj),
            question={
                "texts": question.texts,
                "button": question.button or operation.label,
                "icon": operation.icon,
                "tone": operation.tone,
                "back": on.url(obj),
                "refusal": refused.sentence if refused else "",
            },
            form=form if form.fields else None,
            **question.shown,
        )


class FormPage(OperationPage):
    """Holds what a form on some page asks for at once. It leads back to there (`next`), else to the page
    named `home`."""

    home = ""

    def _back(self, obj: Any) -> HttpResponseBase:
        back, hosts = self.request.POST.get("next", ""), {self.request.get_host()}
        safe = url_has_allowed_host_and_scheme(back, hosts, require_https=self.request.is_secure())
        return HttpResponseRedirect(back if safe else link(self.home))
