// Says the browser's time zone; the next page is painted in it.

document.cookie = `okmq_browser_zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
