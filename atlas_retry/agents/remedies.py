"""What to do where the API of Anthropic, or the way to it, does not work. Knows no agent."""

from typing import Final

AGAIN: Final = "then run the same command again"
BILLING: Final = f"add credit at https://console.anthropic.com/settings/billing, {AGAIN}"
LIMIT: Final = f"wait until the limit is lifted, {AGAIN}"
MODEL: Final = "choose a model that the account has: agent.models, or --model"
NO_CONNECTION: Final = f"see to the network, the proxy or ANTHROPIC_BASE_URL, {AGAIN}"
OVERLOADED: Final = f"wait a few minutes (https://status.anthropic.com), {AGAIN}"
PROXY: Final = "give the proxy its password: HTTPS_PROXY"
