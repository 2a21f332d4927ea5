# Images of the three processes, from what `make image-files` has put into image/: nothing is
# pulled. docker-compose.yaml builds and runs them; see docs/containers.md.

FROM scratch AS bus
ARG UID=1000
ARG GID=1000
COPY image/common/ /
COPY image/bin/bus /bin/bus
COPY --chown=${UID}:${GID} image/state/ /var/lib/keryx/
COPY --chown=${UID}:${GID} image/state/ /creds/
ENV XDG_STATE_HOME=/var/lib HOME=/var/lib/keryx PATH=/bin
USER ${UID}:${GID}
ENTRYPOINT ["/bin/bus"]

FROM scratch AS gateway-bridge
ARG UID=1000
ARG GID=1000
COPY image/common/ /
COPY image/bin/gateway-bridge /bin/gateway-bridge
ENV HOME=/tmp PATH=/bin
USER ${UID}:${GID}
ENTRYPOINT ["/bin/gateway-bridge"]

# The executor has a shell and the usual small programs, for commands to use.
FROM scratch AS executor
ARG UID=1000
ARG GID=1000
COPY image/common/ /
COPY image/busybox/ /bin/
COPY image/bin/executor /bin/executor
COPY --chown=${UID}:${GID} image/state/ /work/
COPY --chown=${UID}:${GID} image/state/ /var/spool/keryx/
ENV HOME=/work PATH=/bin
USER ${UID}:${GID}
WORKDIR /work
ENTRYPOINT ["/bin/executor"]
