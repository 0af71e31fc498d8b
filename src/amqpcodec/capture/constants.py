"""The numbers of `layers`: how walks end, the layers, why packets are not read, kinds of tunnels."""

from __future__ import annotations

# How a walk ends.
FOREIGN, TCP, FRAGMENT, EXPORTED, UNREAD = 0, 1, 2, 3, 4
# The layers. Those of one or two octets of numbers have a table each: `_ethertype`, `_protocol`.
IPV4, IPV6, BY_VERSION, ETHERNET, TAGGED, LLC, MPLS, PPP, PPPOE, UDP = 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
GRE, ERSPAN, EXTENSION, AUTHENTICATION, VXLAN, GENEVE, NSH, GTP, WLAN = 20, 21, 22, 23, 24, 25, 26, 27, 28
# Why a packet that may carry TCP is not read; network.py has the texts.
UNKNOWN_LINK, UNKNOWN_ETHERTYPE, UNKNOWN_PROTOCOL, UNKNOWN_PPP, UNKNOWN_TUNNEL, ENCRYPTED = 1, 2, 3, 4, 5, 6
IPV4_CUT, IPV4_DAMAGED, IPV6_CUT, IPV6_DAMAGED, EXTENSION_CUT, EXTENSION_DAMAGED = 7, 8, 9, 10, 11, 12
HEADER_CUT, TOO_DEEP = 13, 14
# Which encryption, or compression, hides what is in a packet.
ESP, ESP_IN_UDP, IPCOMP, WIREGUARD, MACSEC, MPPE, WPA = 1, 2, 3, 4, 5, 6, 7
# Kinds of tunnels whose number tells connections with the same addresses apart.
OF_VXLAN, OF_GENEVE, OF_GRE, OF_ERSPAN, OF_MPLS, OF_PPPOE, OF_GTP, OF_SERVICE = 1, 2, 3, 4, 5, 6, 7, 8
MOST_NUMBERS = 12  # of tunnels and labels, one inside the other
MOST_HEADERS = 16  # of IP and Ethernet, one inside the other
