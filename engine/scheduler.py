"""The scheduler inside autoregressive stages. What is ours here, and nothing else, differs.

`OmniARScheduler` is vLLM's scheduler with one addition: a request that is *held* (no conditioning
row yet, or no credit on its outgoing edge) is not scheduled in this step. It keeps its KV blocks,
its place in the running list and its chance of being preempted; it costs the batch nothing.
Upstream skips running requests whose `next_decode_eligible_step` lies in the future; holding a
running request is exactly that field.
"""

from __future__ import annotations

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request

NEVER = 2**62
"""A step number that is not reached."""


class OmniARScheduler(Scheduler):
    """vLLM's scheduler that can hold requests back, step by step."""

    held_requests: frozenset[str] = frozenset()

    def hold(self, request_ids: frozenset[str]) -> None:
        """Names the requests that are not to be scheduled until the next call."""
        self.held_requests = request_ids

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """One scheduling step in which held requests do not take part.

        Held requests that wait for a prefill (a renewed one, after a preemption) are set aside
        from the waiting queue for the time of the step and put back at their place.
        """
        if not self.held_requests:
            return super().schedule(throttle_prefills)
        held_running = [r for r in self.running if r.request_id in self.held_requests]
        eligible_steps = [request.next_decode_eligible_step for request in held_running]
        for request in held_running:
            request.next_decode_eligible_step = NEVER
        order = list(self.waiting)
        self.waiting.remove_requests([r for r in order if r.request_id in self.held_requests])
        try:
            return super().schedule(throttle_prefills)
        finally:
            self._restore_waiting(order)
            for request, step in zip(held_running, eligible_steps, strict=True):
                request.next_decode_eligible_step = step

    def _restore_waiting(self, order: list[Request]) -> None:
        """Puts held requests back among those that still wait, each at its old place.

        Requests that were preempted in the step stand first, where upstream puts them.
        """
        left = list(self.waiting)
        known = set(order)
        staying = {r for r in order if r in left or r.request_id in self.held_requests}
        ordered = [r for r in left if r not in known] + [r for r in order if r in staying]
        self.waiting.remove_requests(left)
        for request in ordered:
            self.waiting.add_request(request)
