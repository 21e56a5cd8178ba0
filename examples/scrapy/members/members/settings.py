BOT_NAME = "members"
SPIDER_MODULES = ["members.spiders"]
DOWNLOADER_MIDDLEWARES = {"members.middlewares.Signed": 543}
SPIDER_MIDDLEWARES = {"members.middlewares.Numbered": 543}
EXTENSIONS = {"members.extensions.Counted": 500}
RETRY_TIMES = 1
