-- How long a script goes on: one that takes many messages away works in steps, looks at the processor time between them, and
-- is called again for the rest. So everybody else waits for the same few milliseconds, whatever messages weigh and however
-- fast the machine is. Where the server does not tell the time, steps are counted.

local BUDGET_MS, BUDGET_STEPS = 1.25, 3

-- least: so many steps are done in any case. times: so many times the usual budget, where the caller rests between calls.
local function budget_begin(least, times)
  times = times or 1
  return {steps = 0, least = least or 1, most = BUDGET_STEPS * times,
    ends_s = library.processor_s and library.processor_s() + BUDGET_MS * times / 1000}
end

-- Said after each step: whether there may be another.
local function budget_goes_on(budget)
  budget.steps = budget.steps + 1
  if budget.steps < budget.least then return true end
  if budget.ends_s then return library.processor_s() < budget.ends_s end
  return budget.steps < budget.most
end
