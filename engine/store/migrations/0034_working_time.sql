-- No time counts in a traversal that has ended; operations that outlived it had started it again.
update traversal set working_since = null
 where working_since is not null and state not in ('running', 'ending');
