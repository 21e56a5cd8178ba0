"""The adapters on Redis. Import this module only if the settings name a server: Redis's packages are an extra."""

from scrapeyard.engines.budget.redis import RedisJobLedgers
from scrapeyard.engines.cache.redis import RedisPages
from scrapeyard.engines.escalation.redis import RedisWays
from scrapeyard.engines.politeness.redis import RedisGate
from scrapeyard.gateway.limits.redis import RedisLimiter
from scrapeyard.queues.redis.queue import RedisQueue

__all__ = ["RedisGate", "RedisJobLedgers", "RedisLimiter", "RedisPages", "RedisQueue", "RedisWays"]
