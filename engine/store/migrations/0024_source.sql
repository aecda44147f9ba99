-- Templates as they were sent, where they were sent as text: with comments, and in their order.

alter table template add column source text;
