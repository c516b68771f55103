#!/usr/bin/env bash
# Guess:        Business::CreditCard names the brand of a number: a JCB card is a JCB card.
# What happens: The answer depends on $Business::CreditCard::Country, which is US. There a number of JCB is a "Discover
#               card", because Discover's network takes it. With JP it is JCB.
# Versions:     libbusiness-creditcard-perl 0.39 of Debian 12, installed by apt-get
# Who meets it: Perl shops that store or show the brand, and compare it with the brand that the service answers.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
debian libbusiness-creditcard-perl
for country in US JP; do
	perl -MBusiness::CreditCard -e '$Business::CreditCard::Country = shift; print "$Business::CreditCard::Country: ", cardtype("3530111333300000"), "\n"' "$country"
done 2>&1 | tee seen
seen_is <<'END'
US: Discover card
JP: JCB
END
